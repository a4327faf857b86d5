// The object libraries that carry the precompiled headers need a source, which is this file.
