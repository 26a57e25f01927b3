# tds - the wire of TDS 7.4, as a server sees it: packets, the prelogin with TLS inside, LOGIN7,
# requests and the tokens of answers. What a statement means engine.py says.
import asyncio
import ssl
import struct

BATCH, RPC, REPLY, ATTENTION, LOGIN, PRELOGIN = 1, 3, 4, 6, 0x10, 0x12
PACKET = 4096
COLLATION = bytes.fromhex("0904d00034")
OFF, ON, NONE, REQUIRED = range(4)  # of encryption, in a prelogin
MORE, FAILED, COUNT, STOPPED = 1, 2, 0x10, 0x20  # of a DONE token


class Channel:
    """One connection: packets in and out, in plain text or within TLS."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer
        self.tls = self.incoming = self.outgoing = None
        self.plain = b""

    async def bytes(self, n):
        if self.tls is None:
            return await self.reader.readexactly(n)
        while len(self.plain) < n:
            try:
                self.plain += self.tls.read(65536)
            except ssl.SSLWantReadError:
                more = await self.reader.read(65536)
                if not more:
                    raise asyncio.IncompleteReadError(b"", n) from None
                self.incoming.write(more)
        out, self.plain = self.plain[:n], self.plain[n:]
        return out

    async def message(self):
        """The kind and the bytes of one message, of any number of packets."""
        data = b""
        while True:
            head = await self.bytes(8)
            kind, status, size = struct.unpack(">BBH", head[:4])
            data += await self.bytes(size - 8)
            if status & 1:
                return kind, data

    def send(self, data, kind=REPLY):
        out = []
        for at in range(0, len(data) or 1, PACKET - 8):
            part = data[at:at + PACKET - 8]
            is_last = at + PACKET - 8 >= len(data)
            out.append(struct.pack(">BBHHBB", kind, is_last, len(part) + 8, 0, 1, 0) + part)
        whole = b"".join(out)
        if self.tls is not None:
            self.tls.write(whole)
            whole = self.outgoing.read()
        self.writer.write(whole)

    async def wrap(self, context):
        """The handshake of TLS, within packets of the prelogin's kind."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                if outgoing.pending:
                    self.send(outgoing.read(), PRELOGIN)
                incoming.write((await self.message())[1])
        if outgoing.pending:
            self.send(outgoing.read(), PRELOGIN)
        self.tls, self.incoming, self.outgoing = tls, incoming, outgoing

    def unwrap(self):
        """TLS was for the login alone."""
        self.tls = None


def prelogin_of(data):
    options, at = {}, 0
    while data[at] != 0xff:
        token, offset, size = struct.unpack(">BHH", data[at:at + 5])
        options[token] = data[offset:offset + size]
        at += 5
    return options


def prelogin(encryption):
    parts = [(0, bytes([15, 0, 16, 0, 0, 0])), (1, bytes([encryption])), (2, b"\0"), (3, b""),
             (4, b"\0")]
    head, body = b"", b""
    for token, data in parts:
        head += struct.pack(">BHH", token, 5 * len(parts) + 1 + len(body), len(data))
        body += data
    return head + b"\xff" + body


def login_of(data):
    def text(at):
        offset, n = struct.unpack("<HH", data[at:at + 4])
        return data[offset:offset + 2 * n]

    def clear(byte):
        byte ^= 0xa5
        return (byte >> 4 | byte << 4) & 0xff
    return {"user": text(40).decode("utf-16le"), "database": text(68).decode("utf-16le"),
            "password": bytes(map(clear, text(44))).decode("utf-16le")}


def short(text):
    return bytes([len(text)]) + text.encode("utf-16le")


def change(kind, new, old):
    body = bytes([kind]) + new + old
    return b"\xe3" + struct.pack("<H", len(body)) + body


def login_reply(database):
    body = b"\x01" + bytes.fromhex("74000004") + short("not Microsoft") + bytes([15, 0, 16, 0])
    return (change(1, short(database), short("master")) + change(7, b"\x05" + COLLATION, b"\0") +
            change(4, short("4096"), short("4096")) + b"\xad" + struct.pack("<H", len(body)) +
            body + done(0xfd))


def problem(number, level, text):
    """An ERROR token; below level 11 an INFO."""
    body = (struct.pack("<IBBH", number, 1, level, len(text)) + text.encode("utf-16le") +
            short("test") + short("") + struct.pack("<I", 1))
    return (b"\xaa" if level > 10 else b"\xab") + struct.pack("<H", len(body)) + body


def done(token, status=0, count=None):
    if count is not None:
        status |= COUNT
    return struct.pack("<BHHQ", token, status, 0, count or 0)


# A column is varchar ("s"), nvarchar(max) ("v") or bigint ("i").
KINDS = {"s": b"\xa7" + struct.pack("<H", 384) + COLLATION, "v": b"\xe7\xff\xff" + COLLATION,
         "i": b"\x26\x08"}


def value_of(kind, value):
    if kind == "i":
        return b"\0" if value is None else b"\x08" + struct.pack("<q", value)
    if kind == "s":
        if value is None:
            return b"\xff\xff"
        data = value.encode("ascii")
        return struct.pack("<H", len(data)) + data
    if value is None:
        return b"\xff" * 8
    data = value.encode("utf-16le")
    return struct.pack("<QI", len(data), len(data)) + data + (b"\0\0\0\0" if data else b"")


def rows(kinds, lines):
    head = b"\x81" + struct.pack("<H", len(kinds))
    for kind in kinds:
        head += struct.pack("<IH", 0, 1) + KINDS[kind] + short("")
    return head + b"".join(b"\xd1" + b"".join(map(value_of, kinds, line)) for line in lines)


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        size = struct.calcsize(form)
        out = struct.unpack(form, self.data[self.at:self.at + size])
        self.at += size
        return out[0] if len(out) == 1 else out

    def raw(self, n):
        self.at += n
        return self.data[self.at - n:self.at]


def skip_headers(data):
    return data[struct.unpack("<I", data[:4])[0]:]


def batch_of(data):
    return skip_headers(data).decode("utf-16le")


def parameter(c):
    """The next one's name and value."""
    name = c.raw(2 * c.take("<B")).decode("utf-16le")
    c.take("<B")
    kind = c.take("<B")
    if kind == 0xe7:
        most = c.take("<H")
        c.raw(5)
        if most != 0xffff:
            n = c.take("<H")
            return name, None if n == 0xffff else c.raw(n).decode("utf-16le")
        n, data = c.take("<Q"), b""
        while n != 2**64 - 1 and (size := c.take("<I")) > 0:
            data += c.raw(size)
        return name, data.decode("utf-16le")
    if kind == 0x63:
        c.raw(9)
        n = c.take("<i")
        return name, None if n < 0 else c.raw(n).decode("utf-16le")
    if kind == 0x26:
        c.take("<B")
        n = c.take("<B")
        return name, None if n == 0 else c.take({4: "<i", 8: "<q"}[n])
    if kind in (0x38, 0x7f):
        return name, c.take({0x38: "<i", 0x7f: "<q"}[kind])
    raise ValueError(f"a parameter of type {kind:#x}")


def rpc_of(data):
    """The procedure's name, or number, and its parameters as (name, value)."""
    c = Cursor(skip_headers(data))
    n = c.take("<H")
    procedure = c.take("<H") if n == 0xffff else c.raw(2 * n).decode("utf-16le")
    c.take("<H")
    parameters = []
    while c.at < len(c.data):
        parameters.append(parameter(c))
    return procedure, parameters
