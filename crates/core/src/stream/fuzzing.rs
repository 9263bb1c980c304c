//! Bodies of the fuzz targets, also run over the committed corpora by the tests.
