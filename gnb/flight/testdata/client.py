# Reads a served graph with pyarrow and DuckDB, and sends it back under another name.
import json
import sys

import duckdb  # docs
import pyarrow as pa  # docs
from pyarrow import flight  # docs

client = flight.connect("grpc://" + sys.argv[1])
options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer secret")])


def refusal(f):
    try:
        f()
    except Exception as e:
        return str(e)
    return "none"


nodes = client.do_get(flight.Ticket("nodes"), options).read_all()  # docs
ticket = flight.Ticket(json.dumps({"table": "nodes", "from": 10, "to": 100, "columns": ["id"]}))
part = client.do_get(ticket, options).read_all()  # docs

info = client.get_flight_info(flight.FlightDescriptor.for_path("edges"), options)  # docs
pieces = [client.do_get(e.ticket, options).read_all() for e in info.endpoints]
edges = pa.concat_tables(pieces)
assert len(pieces) > 1 and info.total_records == len(edges)
assert nodes.schema.metadata[b"graphnb.nodes"] == b"900"

hub = duckdb.sql("SELECT dst, count(*) AS n FROM edges GROUP BY dst ORDER BY n DESC LIMIT 1").fetchall()[0]  # docs
train = duckdb.sql("SELECT count(*) FROM nodes WHERE split = 'train'").fetchall()[0][0]


def put(name, kind, table):
    descriptor = flight.FlightDescriptor.for_path(name, kind)
    writer, reader = client.do_put(descriptor, table.schema, options)  # docs
    writer.write_table(table, max_chunksize=4096)  # docs
    writer.close()  # docs


put("copy", "nodes", nodes.slice(450))
put("copy", "nodes", nodes.slice(0, 450))
put("copy", "edges", edges)
built = list(client.do_action(flight.Action("build", json.dumps({"name": "copy"}).encode()), options))
assert json.loads(built[0].body.to_pybytes())["nodes"] == 900

features = nodes["features"].combine_chunks()
print(json.dumps({
    "nodes": len(nodes),
    "edges": len(edges),
    "train": train,
    "features": nodes.schema.field("features").type.list_size,
    "null": nodes["label"].null_count,
    "sum": float(features.flatten().to_numpy().astype("float64").sum()),
    "slice": part["id"].to_pylist(),
    "hub": hub,
    "token": refusal(lambda: client.do_get(flight.Ticket("nodes")).read_all()),
    "range": refusal(lambda: client.do_get(flight.Ticket('{"table": "nodes", "to": 901}'), options).read_all()),
}))
