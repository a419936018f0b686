"""A watch over the kernel of a notebook: what does not answer any more is ended, and told.

papermill waits for ever for a kernel that is stopped, whose cell never ends, or whose answer
was lost. The watch looks at all three from a thread of its own, kills the kernel with all it
started, and says which cell it was and how long it ran.
"""

import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

from ipykernel.kernelspec import make_ipkernel_cmd
from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from dlsim import processes
from dlsim.study.warm import Kernel

#: Name under which papermill knows the engine below.
ENGINE = "dlsim"
#: How often the watch looks, and how long a kernel may keep silent in two ways.
TICK_SECONDS, HEART_SECONDS, REPLY_SECONDS = 0.5, 30.0, 60.0


class Problem(NamedTuple):
    """Why a kernel was ended, and whether another may fare better."""

    text: str
    again: bool


class Watch:
    """What is known of the kernel, and since when."""

    def __init__(
        self, limit: float, tell: Callable[[int, float], object], kernel: Kernel | None = None
    ) -> None:
        self.limit, self.tell, self.kernel = limit, tell, kernel
        self.mark = kernel.mark if kernel else secrets.token_hex(8)
        self.problem: Problem | None = None
        self.client: Any = None
        self.cell, self.running = 0, False
        self.begun = self.beat = self.heard = time.monotonic()
        self.state = ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking, and leave no kernel behind."""
        self._over.set()
        self._thread.join()
        processes.end_run(self.mark)

    def begin(self) -> None:
        """Note that a code cell is sent to the kernel."""
        self.cell, self.state = self.cell + 1, "sent"
        self.begun = self.heard = self.beat = time.monotonic()
        self.running = True

    def died(self, error: Exception) -> Problem:
        """Return what ended the kernel: the watch, or an error of its own."""
        what = f"{type(error).__name__}: {error}"
        return self.problem or Problem(f"{self._where()}{what}", True)

    def _where(self) -> str:
        seconds = time.monotonic() - self.begun
        return f"code cell {self.cell}, after {seconds:.0f} s: " if self.cell else ""

    def _trouble(self, now: float) -> Problem | None:
        seconds, where = now - self.begun, self._where()
        if now - self.beat > HEART_SECONDS:
            return Problem(f"{where}no heartbeat of the kernel for {HEART_SECONDS:g} s", True)
        answers = now - self.beat < 2 * TICK_SECONDS  # of a stopped kernel, its heart tells more
        if answers and self.state != "busy" and now - self.heard > REPLY_SECONDS:
            lost = "end" if self.state == "idle" else "begin"
            return Problem(f"{where}the kernel is idle, and never told the cell's {lost}", True)
        if seconds > self.limit:
            return Problem(
                f"code cell {self.cell} ran {seconds:.0f} s, longer than its limit of "
                f"{self.limit:g} s (--cell-limit)", False
            )  # fmt: skip
        return None

    def _look_on(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            now = time.monotonic()
            with suppress(Exception):  # the client comes and goes beside this thread
                if self.client is None or self.client.kc.hb_channel.is_beating():
                    self.beat = now
            self.tell(self.cell if self.running else 0, now - self.begun)
            if self.running and self.problem is None:
                self.problem = self._trouble(now)
                if self.problem:
                    processes.end_run(self.mark)


class _Manager(AsyncKernelManager):
    """A manager that takes the kernel forked for it, where its command would start the same."""

    kernel: Kernel | None = None

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: Any) -> None:
        kernel, local, usual = self.kernel, self.provisioner, make_ipkernel_cmd()
        usual[usual.index("{connection_file}")] = self.connection_file
        if not kernel or type(local) is not LocalProvisioner or kernel_cmd[: len(usual)] != usual:
            await super()._async_launch_kernel(kernel_cmd, **options)
            return
        self.kernel = None
        where = options.get("cwd") or os.getcwd()
        kernel.begin(kernel_cmd[2:], options["env"], str(where))
        about = {"process": kernel, "pid": kernel.pid, "pgid": kernel.pid, "cwd": where}
        vars(local).update(about)
        self._reconcile_connection_info(local.connection_info)


class _Client(PapermillNotebookClient):
    """papermill's client, which tells the watch what happens."""

    watch: Watch

    def create_kernel_manager(self) -> AsyncKernelManager:
        self.kernel_manager_class = _Manager
        manager = super().create_kernel_manager()
        manager.kernel = self.watch.kernel
        return manager

    def execute_cell(self, cell: Any, cell_index: int, **options: Any) -> Any:
        if cell.cell_type != "code" or not cell.source.strip():
            return super().execute_cell(cell, cell_index, **options)
        self.watch.begin()
        try:
            self.nb_man.save()
            return super().execute_cell(cell, cell_index, **options)
        except Exception:
            self.nb_man.save()
            raise
        finally:
            self.watch.running = False

    def process_message(self, msg: Any, *args: Any, **options: Any) -> Any:
        if msg["msg_type"] == "status":  # the kernel is busy with the cell, or idle again
            self.watch.state, self.watch.heard = msg["content"]["execution_state"], time.monotonic()
        return super().process_message(msg, *args, **options)


class _Engine(NBClientEngine):
    """papermill's engine, with the client above."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: Any, kernel_name: str, *, start_timeout: float, watch: Watch, **options: Any
    ) -> None:
        options.pop("input_path", None)
        client = _Client(nb_man, kernel_name=kernel_name, startup_timeout=start_timeout, **options)
        client.watch = watch
        watch.client, save = client, nb_man.save
        # papermill writes all twice a cell, text included
        nb_man.save = lambda: save() if watch.running else None
        try:
            client.execute(env=processes.marked(watch.mark))
        finally:
            watch.client = None


papermill_engines.register(ENGINE, _Engine)
