"""The display list: what the beam draws of a RAM image, as compiled code without OpenCV."""
