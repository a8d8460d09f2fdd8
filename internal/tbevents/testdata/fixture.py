"""Writes fixture.tfevents by TensorBoard's own writer (tensorboard==2.21.0), and checks files by its
own readers.

    fixture.py write FILE       the fixture of this directory
    fixture.py read DIR         what TensorBoard reads in DIR, as JSON
"""
import json
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.plugins.hparams import metadata, plugin_data_pb2, summary_v2
from tensorboard.summary.writer.record_writer import RecordWriter


def write(path):
    start = 1700000000.25
    with open(path, "wb") as f:
        w = RecordWriter(f)

        def put(**fields):
            for v in fields["summary"].value if "summary" in fields else []:
                data = v.metadata.plugin_data
                if data.content:  # its map in one order, so that the file is the same each time
                    message = plugin_data_pb2.HParamsPluginData.FromString(data.content)
                    data.content = message.SerializeToString(deterministic=True)
            w.write(event_pb2.Event(**fields).SerializeToString())

        put(wall_time=start, file_version="brain.Event:2")
        put(wall_time=start, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))
        hparams = {"lr": 0.01, "model": "sage", "residual": True, "hidden": 64}
        put(wall_time=start, summary=summary_v2.hparams_pb(hparams, trial_id="run-1", start_time_secs=start))
        for step in range(1, 4):
            values = [
                summary_pb2.Summary.Value(tag="loss/step", simple_value=1.0 / step),
                summary_pb2.Summary.Value(tag="learning_rate", simple_value=0.01),
            ]
            put(wall_time=start + step, step=step, summary=summary_pb2.Summary(value=values))
        put(wall_time=start + 4, step=300, summary=summary_pb2.Summary(
            value=[summary_pb2.Summary.Value(tag="loss/step", simple_value=float("nan"))]))
        end = plugin_data_pb2.SessionEndInfo(status=1, end_time_secs=start + 5)
        put(wall_time=start + 5, summary=summary_v2._summary_pb(
            metadata.SESSION_END_INFO_TAG, plugin_data_pb2.HParamsPluginData(session_end_info=end)))


def read(directory):
    acc = event_accumulator.EventAccumulator(directory, size_guidance={event_accumulator.SCALARS: 0})
    acc.Reload()
    out = {"scalars": {t: [(s.step, s.value, s.wall_time) for s in acc.Scalars(t)] for t in acc.Tags()["scalars"]}}
    try:
        plugin = acc.PluginTagToContent("hparams")
    except KeyError:
        plugin = {}
    for tag, content in plugin.items():
        out[tag] = str(plugin_data_pb2.HParamsPluginData.FromString(content))
    return out


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        json.dump(read(sys.argv[2]), sys.stdout, indent=1)
