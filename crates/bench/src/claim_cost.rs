//! What a claim costs when little waits, and when a million items wait in ten thousand full workspaces beside it.
