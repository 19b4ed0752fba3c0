// Gives the precompiled torch header, which most folders share, a target to live in.
