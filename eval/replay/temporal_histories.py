"""Histories of Temporal workflows, written by hand: what a server would have recorded of a workflow that calls activities."""

import base64
import json

START = "2026-01-01T00:00:00Z"


def payload(value):
    encoding = base64.b64encode(b"json/plain").decode()
    data = base64.b64encode(json.dumps(value).encode()).decode()
    return {"metadata": {"encoding": encoding}, "data": data}


class History:
    """The events of one workflow. `task` completes a workflow task that schedules activities, `complete` completes one."""

    def __init__(self, workflow, request):
        self.events = []
        self.activities = 0
        self.add(
            "WORKFLOW_EXECUTION_STARTED",
            workflowType={"name": workflow},
            taskQueue={"name": "q"},
            input={"payloads": [payload(request)]},
            originalExecutionRunId="run",
            firstExecutionRunId="run",
            attempt=1,
        )

    def add(self, kind, **attributes):
        name = "".join(word.title() for word in kind.split("_"))
        member = name[0].lower() + name[1:] + "EventAttributes"
        number = len(self.events) + 1
        event = {"eventId": str(number), "eventTime": START, "eventType": "EVENT_TYPE_" + kind, member: attributes}
        self.events.append(event)
        return number

    def task(self):
        scheduled = self.add("WORKFLOW_TASK_SCHEDULED", taskQueue={"name": "q"}, attempt=1)
        started = self.add("WORKFLOW_TASK_STARTED", scheduledEventId=str(scheduled))
        ids = {"scheduledEventId": str(scheduled), "startedEventId": str(started)}
        # What a worker of today writes down: ids and names of commands are compared.
        return self.add("WORKFLOW_TASK_COMPLETED", sdkMetadata={"coreUsedFlags": [1, 2, 3], "langUsedFlags": [1]}, **ids)

    def schedule(self, task, activity, args):
        self.activities += 1
        return self.add(
            "ACTIVITY_TASK_SCHEDULED",
            activityId=str(self.activities),
            activityType={"name": activity},
            taskQueue={"name": "q"},
            input={"payloads": [payload(arg) for arg in args]},
            workflowTaskCompletedEventId=str(task),
            startToCloseTimeout="60s",
        )

    def complete(self, scheduled, value):
        started = self.add("ACTIVITY_TASK_STARTED", scheduledEventId=str(scheduled), attempt=1)
        ids = {"scheduledEventId": str(scheduled), "startedEventId": str(started)}
        self.add("ACTIVITY_TASK_COMPLETED", result={"payloads": [payload(value)]}, **ids)

    def end(self, output):
        task = self.task()
        result = {"payloads": [payload(output)]}
        self.add("WORKFLOW_EXECUTION_COMPLETED", result=result, workflowTaskCompletedEventId=str(task))

    def text(self):
        return json.dumps({"events": self.events})
