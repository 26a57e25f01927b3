# The addon: one C file on libbaton, found by pkg-config.
{
  "targets": [{
    "target_name": "baton",
    "sources": ["addon.c"],
    "cflags": ["-std=c11", "-Wall", "-Wextra", "<!@(pkg-config --cflags baton)"],
    "defines": ["_GNU_SOURCE"],
    "libraries": ["<!@(pkg-config --libs baton)"]
  }]
}
