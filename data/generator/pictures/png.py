"""Writes PNG files whose bytes depend only on the pixels. The compression is written here, because the output of
Python's module zlib differs from one version of the library zlib to the next.

The compressor follows RFC 1951 with one block of the fixed Huffman code. It looks for the bytes to copy in the row
above and at the last places with the same three bytes."""

import struct
import zlib

CANDIDATES = 24  # number of earlier places with the same three bytes that the search for a match compares
LONGEST = 258  # longest match that DEFLATE can write
EXTRA_LENGTH = [0] * 8 + [bits for bits in range(1, 6) for _ in range(4)] + [0]  # extra bits of symbols 257 to 285
EXTRA_DISTANCE = [0] * 4 + [bits for bits in range(1, 14) for _ in range(2)]  # extra bits of distance symbols 0 to 29


def first_values(first, extra):
    """Returns the smallest value of each symbol of a table with these numbers of extra bits."""
    values = [first]
    for bits in extra[:-1]:
        values.append(values[-1] + (1 << bits))
    return values


FIRST_LENGTH = first_values(3, EXTRA_LENGTH)[:-1] + [LONGEST]  # the last symbol means 258 and nothing else
FIRST_DISTANCE = first_values(1, EXTRA_DISTANCE)


class Bits:
    """Collects bits into bytes, the lowest bit of a byte first."""

    def __init__(self):
        self.bytes = bytearray()
        self.value = 0
        self.count = 0

    def number(self, value, count):
        """Appends `count` bits of a number, its lowest bit first."""
        self.value |= value << self.count
        self.count += count
        while self.count >= 8:
            self.bytes.append(self.value & 255)
            self.value >>= 8
            self.count -= 8

    def code(self, value, count):
        """Appends a Huffman code of `count` bits, its highest bit first."""
        for bit in range(count - 1, -1, -1):
            self.number(value >> bit & 1, 1)

    def symbol(self, symbol):
        """Appends a literal byte, the end of the block (256) or the symbol of a length, in the fixed Huffman code."""
        if symbol < 144:
            self.code(0x30 + symbol, 8)
        elif symbol < 256:
            self.code(0x190 + symbol - 144, 9)
        elif symbol < 280:
            self.code(symbol - 256, 7)
        else:
            self.code(0xC0 + symbol - 280, 8)

    def match(self, length, distance):
        """Appends the copy of `length` bytes that stand `distance` bytes before."""
        index = max(i for i, first in enumerate(FIRST_LENGTH) if first <= length)
        self.symbol(257 + index)
        self.number(length - FIRST_LENGTH[index], EXTRA_LENGTH[index])
        index = max(i for i, first in enumerate(FIRST_DISTANCE) if first <= distance)
        self.code(index, 5)
        self.number(distance - FIRST_DISTANCE[index], EXTRA_DISTANCE[index])

    def finish(self):
        """Returns all bytes; zero bits fill the last byte."""
        self.number(0, -self.count % 8)
        return bytes(self.bytes)


def longest_match(data, at, places):
    """Returns (length, distance) of the longest match at position `at`, the first one of equal matches."""
    best = (0, 0)
    for place in places:
        length = 0
        while length < LONGEST and at + length < len(data) and data[place + length] == data[at + length]:
            length += 1
        if length > best[0]:
            best = (length, at - place)
    return best


def compress(data, stride):
    """Returns a zlib stream (RFC 1950) of up to 32,768 bytes that consist of rows of `stride` bytes."""
    if len(data) > 32768:
        raise ValueError(f"{len(data)} bytes are more than the window of 32768 bytes")
    bits = Bits()
    bits.number(0b011, 3)  # the last block, with the fixed Huffman code
    places = {}
    at = 0
    while at < len(data):
        above = [at - stride] if at >= stride else []
        length, distance = longest_match(data, at, places.get(data[at : at + 3], [])[: -CANDIDATES - 1 : -1] + above)
        if length >= 3:
            bits.match(length, distance)
        else:
            bits.symbol(data[at])
            length = 1
        for place in range(at, at + length):
            places.setdefault(data[place : place + 3], []).append(place)
        at += length
    bits.symbol(256)
    return b"\x78\x01" + bits.finish() + struct.pack(">I", zlib.adler32(data))


def chunk(kind, data):
    """Returns a chunk of a PNG file: the length, the kind, the data and their checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode(rows):
    """Returns the PNG file of a picture: 8-bit RGB without a filter. A row is a list of (red, green, blue)."""
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    lines = [b"\0" + bytes(value for pixel in row for value in pixel) for row in rows]
    data = compress(b"".join(lines), len(lines[0]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
