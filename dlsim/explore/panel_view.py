"""The widgets of a panel: controls beside a picture that is drawn again when one of them moves."""

import base64
import gc
import html
import itertools
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from IPython.display import Javascript, display

from dlsim.errors import DlsimError
from dlsim.explore.pictures import HEIGHT, SCREEN_DPI, WIDTH
from dlsim.progress import is_in_notebook
from dlsim.study.results import PICTURE_FORMATS

#: Controls stand in a narrow column beside the picture where the window has room for both. The
#: picture grows with the window as long as all of the panel is in view, and so does its sentence.
#: A picture that does not belong to the values shown is pale, after a moment, or it would flicker.
_STYLE = """<style>
.dlsim-panel {--jp-widgets-font-size: 13px; font-size: 14px}
.dlsim-panel .widget-html-content {line-height: 1.35}
.dlsim-field.widget-inline-hbox {flex-flow: row wrap; height: auto; align-items: center}
.dlsim-field.widget-inline-hbox > .widget-label {flex: 1 0 100%; height: auto; text-align: left;
  white-space: normal; line-height: 1.25; margin: 2px 0 0}
.dlsim-field .slider-container {flex: 1 1 6em; min-width: 0}
.dlsim-field .widget-readout {flex: 0 0 3.4em; min-width: 0}
.dlsim-panel code {overflow-wrap: anywhere; white-space: normal}
.dlsim-picture {width: 100%; height: auto !important;
  max-width: min(100%, max(30em, (100vh - 25em) * RATIO)) !important}
.dlsim-stale {opacity: 0.12; filter: grayscale(1); transition: opacity 0s 0.3s}
.dlsim-words {min-height: 4.05em; font-weight: 600; font-size: clamp(14px, 1vw, 20px)}
.dlsim-error {min-height: 4.05em; border-left: 4px solid #d55e00; padding-left: 0.6em}
.dlsim-panel dl {columns: 22em}
.dlsim-panel :is(dt, dd) {float: none; width: auto; break-inside: avoid}
.dlsim-panel dt {font-weight: 600; break-after: avoid} .dlsim-panel dd {margin-left: 1.5em}
</style>""".replace("RATIO", f"{WIDTH / HEIGHT:.3f}")
_COLUMN = {"flex": "0 0 13.5em", "min_width": "12em"}
_PICTURE = {"flex": "1 1 24em", "min_width": "min(22em, 100%)"}
_PICTURE |= {"overflow": "visible"}  # or a narrow window has scroll bars within the page
_WIDE_GRID = "repeat(auto-fill, minmax(min(20em, 100%), 1fr))"
#: Screen readers need names of sliders and pictures, which ipywidgets does not give them. What a
#: button unfolds below the picture comes into view.
_SCRIPT = """window.dlsimNames ??= new MutationObserver(() => {
  for (const field of document.querySelectorAll('.dlsim-field'))
    for (const one of field.querySelectorAll('[role=slider]'))
      one.ariaLabel = field.querySelector('.widget-label').textContent;
  for (const one of document.querySelectorAll('img.dlsim-picture'))
    one.alt = one.closest('.dlsim-panel').querySelector('.dlsim-words')?.textContent ?? '';
});
window.dlsimNames.observe(document.body, {childList: true, subtree: true});
window.dlsimUnfold ??= document.addEventListener('click', event => {
  const button = event.target.closest('.dlsim-panel .widget-toggle-button');
  if (!button) return;
  const all = what => [...button.closest('.dlsim-panel').querySelectorAll(what)];
  const part = all('.dlsim-fold')[all('.widget-toggle-button').indexOf(button)];
  new ResizeObserver((_, seen) => {
    if (!part.offsetHeight) return;
    part.scrollIntoView({block: 'nearest'});
    seen.disconnect();
  }).observe(part);
}) ?? true;"""


def _status(kind: str, text: str) -> str:
    """Return a line of HTML that screen readers announce when it changes."""
    return f'<div class="dlsim-{kind}" role="status" aria-live="polite">{text}</div>'


class PanelView(widgets.VBox):
    """The widgets of a `Panel`: controls at the left, sentence and picture at the right."""

    def __init__(self, panel: Any, values: dict[str, Any]) -> None:
        self.panel = panel
        self.controls = {
            name: control.widget(values[name]) for name, control in panel.all_controls.items()
        }
        self.readings = {
            name: menu.widget(values["reading"].get(name, menu.default))
            for name, menu in panel.reading_menus.items()
        }
        self.image = widgets.Image(format="svg+xml", layout=widgets.Layout(display="none"))
        self.sentence, self.link, self.saved = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self.drawings = itertools.count(1)
        self.drawn: dict[str, Any] | None = None  # the values of the last picture
        self.caption, self.last_request, self.last_path = "", ("", ""), Path()
        self.image.add_class("dlsim-picture")
        for one in (*self.controls.values(), *self.readings.values()):
            one.add_class("dlsim-field")
            one.observe(lambda _: self.redraw(), names="value")
        super().__init__(self._rows())
        self.add_class("dlsim-panel")
        self.redraw()
        gc.freeze()  # or a collection of all that is imported delays a picture by 0.3 s

    def _rows(self) -> list[widgets.Widget]:
        """Build the two columns, and below them the parts that the buttons unfold."""
        in_view = [self.controls[control.name] for control in self.panel.controls]
        settings = [self.controls[control.name] for control in self.panel.settings]
        folds = {"more settings": _folded_grid(settings)} if settings else {}
        folds |= {"readings": _folded_grid([*self.readings.values()])} if self.readings else {}
        folds["words"] = self._definitions()
        for part in folds.values():
            part.add_class("dlsim-fold")
        toggles = [_fold_button(name, part) for name, part in folds.items()]
        save_row = widgets.HBox(
            [self._save_button(kind) for kind in PICTURE_FORMATS],
            layout=widgets.Layout(flex_flow="row wrap"),
        )
        left = widgets.VBox([*in_view, *toggles, save_row], layout=widgets.Layout(**_COLUMN))
        right = widgets.VBox(
            [self.sentence, self.image, self.link, self.saved], layout=widgets.Layout(**_PICTURE)
        )
        title = widgets.HTML(f"{_STYLE}<b>{html.escape(self.panel.title)}</b>")
        # reversed: a narrow window has the picture above the controls, and a slider in view with it
        columns = widgets.HBox([left, right], layout=widgets.Layout(flex_flow="row wrap-reverse"))
        return [title, columns, *folds.values()]

    def _definitions(self) -> widgets.HTML:
        """Build the folded list of the words in the picture."""
        entries = "".join(
            f"<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>"
            for word, text in self.panel.words.items()
        )
        return widgets.HTML(f"<dl>{entries}</dl>", layout=widgets.Layout(display="none"))

    def _save_button(self, kind: str) -> widgets.Button:
        label = kind.upper()
        layout = widgets.Layout(width="auto", flex="1 1 auto")
        button = widgets.Button(
            description=label, tooltip=f"Save the picture as {label}", layout=layout
        )
        button.on_click(lambda _: self.save(kind))
        return button

    def values(self) -> dict[str, Any]:
        """Return the values that the widgets show."""
        given = {name: one.value for name, one in self.controls.items()}
        return given | {"reading": {name: one.value for name, one in self.readings.items()}}

    def redraw(self) -> None:
        """Draw the picture of the values shown, or say why not and leave the last one pale."""
        self.image.add_class("dlsim-stale")
        values = self.values()
        try:
            self.image.value, self.caption = self.panel.screen_picture(**values)
            self.drawn = values
        except DlsimError as error:
            pale = " The pale picture is the last one drawn." if self.image.value else ""
            text = f"<b>Not drawn:</b> {html.escape(str(error))}.{pale}"
            self.sentence.value = _status("error", text)
            return
        self.image.width = str(round(WIDTH * SCREEN_DPI))
        self.image.height = str(round(HEIGHT * SCREEN_DPI))
        self.image.layout.display = None
        self.image.remove_class("dlsim-stale")
        self.sentence.value = _status("words", html.escape(self.caption))
        call = html.escape(self.panel.call(**values))
        text = f"This picture: <code style='user-select: all'>{call}</code>"
        self.link.value = _status(f"link dlsim-drawn-{next(self.drawings)}", text)

    def save(self, kind: str) -> None:
        """Save the picture; a second click on the same picture, as in a double click, does not."""
        values = self.values()
        try:
            request = (kind, self.panel.call(**values))
            if request == self.last_request and self.last_path.is_file():
                return
            self.last_path = self.panel.save(kind, **values)
            self.last_request = request
            path = html.escape(str(self.last_path))
            text = f"Saved: <code style='user-select: all'>{path}</code>"
        except DlsimError as error:
            text = f"<b>Not saved:</b> {html.escape(str(error))}"
        self.saved.value = _status("kept", text)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Add the picture and its sentence, for viewers that show no widgets."""
        if is_in_notebook():
            display(Javascript(_SCRIPT))
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if self.drawn is not None:
            picture, _ = self.panel.screen_picture("png", **self.drawn)
            bundle["image/png"] = base64.b64encode(picture).decode("ascii")
        return bundle, {"image/png": {"alt": self.caption}}


def _folded_grid(controls: list[widgets.Widget]) -> widgets.GridBox:
    """Return controls side by side, hidden at first."""
    layout = widgets.Layout(grid_template_columns=_WIDE_GRID, display="none")
    return widgets.GridBox(controls, layout=layout)


def _fold_button(name: str, part: widgets.Widget) -> widgets.ToggleButton:
    """Return a button that shows or hides a part of a panel."""
    button = widgets.ToggleButton(
        description=name, icon="caret-down", layout=widgets.Layout(width="auto")
    )

    def unfold(change: Any) -> None:
        part.layout.display = None if change["new"] else "none"

    button.observe(unfold, names="value")
    return button
