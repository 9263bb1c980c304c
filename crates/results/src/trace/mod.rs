//! What happened packet by packet, for other tools to read.
