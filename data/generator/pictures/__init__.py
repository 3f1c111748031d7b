"""The pictures of data/shapes/: their sentences, their places, their drawing and their PNG files."""
