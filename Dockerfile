FROM python:3.11-slim

RUN useradd --create-home --uid 10001 stage
WORKDIR /app

COPY . .
RUN pip install --no-cache-dir --constraint requirements.lock '.[monitor]'

USER stage
CMD ["celery", "-A", "worker.app", "worker", "--loglevel", "INFO", "--task-events"]
