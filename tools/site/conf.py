# conf.py - how Sphinx makes the site of the pages that tools/site/run has put together. Nothing of
# it may be loaded from another host, at build or in the browser: tools/site/check.py looks.
import os

project = "baton"
version = release = os.environ.get("BATON_VERSION", "")
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
language = "en"

myst_heading_anchors = 4  # as Git hosts make them
myst_enable_extensions = []
highlight_language = "text"
suppress_warnings = ["misc.highlighting_failure"]  # $1 in SQL: coloured as far as it goes
pygments_style = "default"
pygments_dark_style = "github-dark"

html_theme = "furo"
html_title = f"baton {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/baton.svg"
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "sidebar_hide_name": False,
    "light_logo": "baton.svg",
    "dark_logo": "baton.svg",
    "light_css_variables": {"color-brand-primary": "#1a5fd0", "color-brand-content": "#1a5fd0",
                            "color-brand-visited": "#1a5fd0"},
    "dark_css_variables": {"color-brand-primary": "#7ab5ff", "color-brand-content": "#7ab5ff",
                           "color-brand-visited": "#7ab5ff"},
}
