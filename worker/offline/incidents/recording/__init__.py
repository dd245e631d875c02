"""What the recipes share: a world of their own, real small tools, and a recorder of their calls.

Nothing here runs in a worker or in the demo. It is used only to record again.
"""
