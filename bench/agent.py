"""A program for inside a node that finds the agent and prints its resident memory in KiB, a second after it staged."""

AGENT_RSS = """
import pathlib, time
time.sleep(1)
for process in pathlib.Path("/proc").glob("[0-9]*"):
    words = (process / "cmdline").read_bytes().split(b"\\0")
    if b"python" in words[0] and b"simnode.sandbox.agent" in words:
        status = (process / "status").read_text()
        print(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")))
        break
else:
    raise SystemExit("no agent in this node")
"""
