"""Start an installed kernel as Jupyter does, run cells, and print what became of each as JSON.

Usage: kernel_client.py KERNELS-DIRECTORY CODE…
"""

import json
import sys

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager

specs = KernelSpecManager(kernel_dirs=[sys.argv[1]])
manager = KernelManager(kernel_name="clew-python3", kernel_spec_manager=specs, transport="ipc")
manager.start_kernel()
client = manager.client()
client.start_channels()
results = []
try:
    client.wait_for_ready(timeout=120)
    for code in sys.argv[2:]:
        printed: list[str] = []

        def listen(message: dict, printed: list[str] = printed) -> None:
            content = message["content"]
            printed.append(content.get("text") or content.get("data", {}).get("text/plain", ""))

        reply = client.execute_interactive(code, output_hook=listen, timeout=120)
        error = reply["content"].get("ename")
        state = reply["metadata"]["clew"]["state"]
        results.append({"state": state, "error": error, "printed": "".join(printed)})
finally:
    client.stop_channels()
    manager.shutdown_kernel()
sys.stdout.write(json.dumps(results) + "\n")
