# names.py - a name service of the tests' own, for mongodb+srv: SRV, TXT and A records by UDP, on a
# loopback address and port 53, which is the only one that resolv.conf can name.
import random
import socket
import struct
import threading

A, TXT, SRV = 1, 16, 33
NO_NAME = 3


def packed(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".") if part) + b"\0"


def srv(host, port):
    return SRV, struct.pack(">HHH", 0, 0, int(port)) + packed(host)


def txt(text):
    return TXT, bytes([len(text)]) + text.encode()


def address(text):
    return A, socket.inet_aton(text)


class Names:
    """zone: each name's records. OSError: such a socket can't be had here."""

    def __init__(self):
        self.zone = {}
        self.is_silent = False
        self.address = f"127.{random.randrange(60, 250)}.{random.randrange(250)}.53"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.address, 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                question, asker = self.socket.recvfrom(4096)
                if not self.is_silent:
                    self.socket.sendto(self.answer(question), asker)
            except OSError:
                return

    def answer(self, question):
        at, parts = 12, []
        while question[at]:
            parts.append(question[at + 1:at + 1 + question[at]].decode().lower())
            at += 1 + question[at]
        name, (kind,) = ".".join(parts), struct.unpack_from(">H", question, at + 1)
        found = [data for what, data in self.zone.get(name, []) if what == kind]
        head = question[:2] + struct.pack(">HHHHH", 0x8580 | (0 if name in self.zone else NO_NAME),
                                          1, len(found), 0, 0)
        return head + question[12:at + 5] + b"".join(
            struct.pack(">HHHIH", 0xc00c, kind, 1, 0, len(data)) + data for data in found)

    def close(self):
        self.socket.close()
