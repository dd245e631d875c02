"""An agent that investigates a really broken local service and submits what it found."""
