"""Run by python_test.py with DATABASE_URL. Prints what it saw as one JSON object."""

import json
import os
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import DatabaseError, connection, models, transaction
from uuid7 import uuid7

address = urlsplit(os.environ["DATABASE_URL"])
settings.configure(USE_TZ=True, DATABASES={"default": {
    "ENGINE": "django.db.backends.postgresql", "NAME": address.path[1:], "HOST": address.hostname, "PORT": address.port,
    "USER": address.username}})
django.setup()


class Order(models.Model):
    id = models.BigIntegerField(primary_key=True)
    customer = models.TextField()
    cents = models.BigIntegerField()
    paid = models.BooleanField(default=False)

    class Meta:
        app_label, managed, db_table = "shop", False, "orders"


# [django-model]
class Event(models.Model):   # rows are only added; the view reads as empty
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    aggregate_type = models.TextField()
    aggregate_id = models.TextField()
    event_type = models.TextField()
    payload = models.JSONField()
    headers = models.JSONField(default=dict)
    occurred_at = models.DateTimeField(null=True)

    class Meta:
        managed = False
        app_label = "shop"
        db_table = 'outbox"."new_event'   # Django puts quotes around it
# [/django-model]


def pay():
    # [django]
    with transaction.atomic():
        Order.objects.filter(id=42).update(paid=True)   # first the order, which locks it
        paid = Event.objects.create(aggregate_type="order", aggregate_id="42", event_type="OrderPaid", payload={"by": "card"}).id
    # [/django]
    return paid


def call():
    # [django-function]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT outbox.enqueue('order', %s, 'OrderShipped', %s)", [42, json.dumps({"by": "ship"})])
        shipped = cursor.fetchone()[0]
    # [/django-function]
    return shipped


def main():
    Order.objects.create(id=42, customer="Zoë 🚀", cents=1250)
    said = {"more": [(pay(), "42", "OrderPaid"), (call(), "42", "OrderShipped")]}
    steps = Event.objects.bulk_create([
        Event(aggregate_type="order", aggregate_id="46", event_type=f"Step{number:02}", payload=[number]) for number in range(20)])
    said["more"] += [(step.id, "46", step.event_type) for step in steps]
    try:
        with transaction.atomic():
            Event.objects.create(aggregate_type="order", aggregate_id="41", event_type="OrderPlaced", payload={})
            Event.objects.create(aggregate_type="order", aggregate_id="41", event_type=" ", payload={})
    except DatabaseError as error:
        said["refused"] = error.__cause__.diag.message_primary
    try:
        steps[0].save()
    except DatabaseError as error:
        said["save"] = str(error).splitlines()[0]
    print(json.dumps(said, default=str))


if __name__ == "__main__":
    main()
