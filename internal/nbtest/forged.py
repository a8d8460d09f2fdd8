"""Sends forged and broken messages to the five sockets of a kernel while one of its cells runs.

usage: forged.py --kernel NAME --dir DIR

It prints {"attacks": [names], "dead": name of the attack after which the kernel had ended or null,
"status" and "error": the cell's, "stdout": its output, "second": the output of a cell run afterwards, "aborted": the
status of the reply to a signed message without its fields, "stderr": what the kernel wrote to its terminal}.
"""

import argparse
import hashlib
import hmac
import json
import os
import queue
import signal
import socket
import struct
import tempfile
import time
import uuid

import lean  # noqa: F401 (for what it does; before Jupyter's packages)
import zmq
from jupyter_client.manager import start_new_kernel

import ports  # noqa: F401 (for what it does)

CELL = """%%
stop := filepath.Join(os.Getenv("FORGED_DIR"), "stop")
for i := 0; i < 1200; i++ {
	if _, err := os.Stat(stop); err == nil {
		fmt.Println("trained to the end")
		return
	}
	time.Sleep(50 * time.Millisecond)
}
"""

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + b"\x00" + bytes(31)


def ready(kind, identity=b"stranger"):
    body = b"\x05READY"
    for name, value in ((b"Socket-Type", kind), (b"Identity", identity)):
        body += bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
    return b"\x04" + bytes([len(body)]) + body


def header(kind):
    return {"msg_id": uuid.uuid4().hex, "username": "x", "session": "x", "msg_type": kind, "version": "5.3", "date": ""}


def parts(key, *frames):
    """Returns a message of the wire protocol with these four parts, signed with key."""
    frames = [f if isinstance(f, bytes) else json.dumps(f).encode() for f in frames]
    mac = hmac.new(key, b"".join(frames), hashlib.sha256).hexdigest().encode()
    return [b"<IDS|MSG>", mac, *frames]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--kernel", required=True)
    p.add_argument("--dir", required=True)
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="gnb-forged-") as tmp, open(os.path.join(tmp, "stderr"), "w+") as log:
        env = dict(os.environ, TMPDIR=tmp, JUPYTER_PREFER_ENV_PATH="1", FORGED_DIR=a.dir)
        km, kc = start_new_kernel(kernel_name=a.kernel, startup_timeout=120, env=env, cwd=a.dir, stdout=log, stderr=log)
        signal.signal(signal.SIGTERM, lambda *_: km.shutdown_kernel(now=True))
        try:
            facts = attack(km, kc, a.dir)
        finally:
            kc.stop_channels()
            km.shutdown_kernel(now=True)
        log.seek(0)
        facts["stderr"] = log.read()[-4000:]
    print(json.dumps(facts))


def attack(km, kc, directory):
    info = km.get_connection_info()
    key = info["key"]
    port = {name: info[name + "_port"] for name in ("shell", "control", "stdin", "iopub", "hb")}
    context = zmq.Context()
    facts = {"attacks": [], "dead": None, "status": None, "stdout": "", "second": "", "aborted": None, "error": ""}
    request = kc.execute(CELL, store_history=False)
    time.sleep(3)
    held = []

    def alive():
        """Reports whether the kernel runs and its heartbeat answers a new peer."""
        if not km.is_alive():
            return False
        s = context.socket(zmq.REQ)
        s.setsockopt(zmq.LINGER, 0)
        s.connect("tcp://127.0.0.1:%d" % port["hb"])
        s.send(b"ping")
        answered = s.poll(5000) != 0
        s.close()
        return answered

    def dealer(name, *messages):
        s = context.socket(zmq.DEALER)
        s.setsockopt(zmq.LINGER, 500)
        s.connect("tcp://127.0.0.1:%d" % port[name])
        for m in messages:
            s.send_multipart(m)
        s.close()

    def raw(name, *data, keep=False):
        s = socket.create_connection(("127.0.0.1", port[name]), timeout=5)
        try:
            for d in data:
                s.sendall(d)
                time.sleep(0.02)
        except OSError:
            pass  # the kernel closed the connection
        if keep:
            held.append(s)
        else:
            s.close()

    kernel_info = (header("kernel_info_request"), {}, {}, {})
    shutdown = (header("shutdown_request"), {}, {}, {"restart": False})
    routers = ("shell", "control", "stdin")
    attacks = {}
    for n in routers:
        attacks["wrong key on " + n] = lambda n=n: dealer(n, parts(b"wrong", *shutdown), parts(b"", *kernel_info))
        attacks["signature that is no hexadecimal number on " + n] = lambda n=n: dealer(
            n, [b"<IDS|MSG>", b"zz" * 32, *parts(key, *shutdown)[2:]], [b"<IDS|MSG>", b"", *parts(key, *shutdown)[2:]])
        attacks["wrong numbers of parts on " + n] = lambda n=n: dealer(
            n, [b""], [b"x"], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"00"], parts(key, *kernel_info)[:5], [b"a"] * 5000)
        attacks["signed, but not JSON on " + n] = lambda n=n: dealer(
            n, parts(key, b"{", b"{", b"{", b"{"), parts(key, b"", b"", b"", b""), parts(key, b"[1]", b"2", b'"x"', b"null"),
            parts(key, header("execute_request"), {}, {}, b"[" * 100000))
        attacks["signed, of an unknown type on " + n] = lambda n=n: dealer(
            n, parts(key, header("no_such_request"), {}, {}, {}), parts(key, header(""), {}, {}, []), parts(key, {}, {}, {}, {}))
        attacks["signed, without fields on " + n] = lambda n=n: dealer(
            n, *[parts(key, header(kind), {}, {}, content) for content in ([], None, {}, {"code": 1}, {"comm_id": {}, "data": 3})
                 for kind in ("shutdown_request", "comm_open", "comm_msg", "comm_info_request", "input_reply", "is_complete_request")
                 if kind != "shutdown_request" or not isinstance(content, dict)])
        attacks["frame of 2^62 bytes on " + n] = lambda n=n: raw(n, GREETING, ready(b"DEALER"), b"\x02" + struct.pack(">Q", 1 << 62), b"x" * 1000)
        attacks["a message that never ends on " + n] = lambda n=n: raw(n, GREETING, ready(b"DEALER"), *[b"\x03" + struct.pack(">Q", 1 << 20) + bytes(1 << 20)] * 20)
    for n in port:
        attacks["HTTP on " + n] = lambda n=n: raw(n, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 64)
        attacks["broken READY on " + n] = lambda n=n: [
            raw(n, GREETING, b"\x04" + bytes([len(b)]) + b) for b in (b"", b"\x05READY\xff", b"\x05READY\x01a\xff\xff\xff\xff", b"\x05READY\x0bSocket-Type\x00")]
        attacks["half a greeting, many times, on " + n] = lambda n=n: [raw(n, GREETING[:20], keep=True) for _ in range(20)]
        attacks["a frame of 2^62 bytes before READY on " + n] = lambda n=n: raw(n, GREETING, b"\x06" + struct.pack(">Q", 1 << 62))
    attacks["a subscriber that does not read"] = lambda: raw("iopub", GREETING, ready(b"SUB"), b"\x00\x01\x01", keep=True)
    attacks["messages to iopub"] = lambda: raw("iopub", GREETING, ready(b"SUB"), *[b"\x00\x05hello"] * 30, b"\x02" + struct.pack(">Q", 1 << 62))
    attacks["heartbeats without an envelope"] = lambda: raw("hb", GREETING, ready(b"REQ"), b"\x00\x01x", b"\x00\x00", b"\x01\x00\x00\x00", b"\x02" + struct.pack(">Q", 1 << 62))
    for name, act in attacks.items():
        facts["attacks"].append(name)
        act()
        if not alive():
            facts["dead"] = name
            return facts
    # A signed execute_request without its fields gets a reply; then the cell may end.
    broken = kc.session.msg("execute_request", {})
    kc.shell_channel.send(broken)
    open(os.path.join(directory, "stop"), "w").close()
    end = time.monotonic() + 60
    while time.monotonic() < end and (facts["status"] is None or facts["aborted"] is None):
        try:
            reply = kc.get_shell_msg(timeout=0.2)
        except queue.Empty:
            continue
        if reply["parent_header"].get("msg_id") == request:
            facts["status"] = reply["content"]["status"]
            facts["error"] = reply["content"].get("evalue", "")
        if reply["parent_header"].get("msg_id") == broken["header"]["msg_id"]:
            facts["aborted"] = reply["content"]["status"]
    second = kc.execute("%%\nfmt.Println(6 * 7)\n", store_history=False)
    while time.monotonic() < end and not facts["second"]:
        try:
            msg = kc.get_iopub_msg(timeout=0.2)
        except queue.Empty:
            continue
        if msg["msg_type"] == "stream" and msg["parent_header"].get("msg_id") == request:
            facts["stdout"] += msg["content"]["text"]
        if msg["msg_type"] == "stream" and msg["parent_header"].get("msg_id") == second:
            facts["second"] += msg["content"]["text"]
    for s in held:
        s.close()
    context.destroy(linger=0)
    return facts


main()
