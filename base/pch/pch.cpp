// A source for the object libraries that carry the precompiled headers.
