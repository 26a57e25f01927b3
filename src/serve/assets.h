/* assets.h: the files of the dashboard, compiled in by cmake/Serve.cmake. */
#ifndef BATON_SERVE_ASSETS_H
#define BATON_SERVE_ASSETS_H

#include "serve/answer/answer.h"

extern const struct serve_asset serve_assets[];
extern const size_t serve_n_assets;

#endif
