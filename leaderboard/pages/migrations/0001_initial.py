import django.db.models.functions.datetime
from django.db import migrations, models
from leaderboard.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='RenderedPage',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('content', models.BinaryField(help_text='Compressed by gzip.')),
                ('content_type', models.CharField(max_length=100)),
                ('rendered_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                'indexes': [models.Index(fields=['rendered_at'], name='rendered_page_by_age')],
            },
        ),
    ]
