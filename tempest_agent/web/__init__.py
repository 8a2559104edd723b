"""The game in a web page: the compiled rules as WebAssembly, and a small local server."""
