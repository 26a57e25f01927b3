# member.py - what MongoDB's own server has and the tests' one lacks: a stand-in for a member of a
# replica set, in front of a server that does the work.
#
# It passes commands on, and answers these by itself: hello (a member of a set, primary or not), the
# login (SCRAM-SHA-256; over TLS also PLAIN and certificates; without it no command), change streams
# (of what passes through it), the indexes of the collection, and whatever answer a test asks for:
# no majority, a step-down, a cut connection. It counts commands, and
# notes writes that ask for less than a majority with journal.
#
# It shows that the adapter understands these answers. It proves nothing of MongoDB's own server.
import base64
import collections
import hashlib
import hmac
import os
import select
import socket
import ssl
import struct
import threading
import time

OP_REPLY, OP_QUERY, OP_MSG = 1, 2004, 2013
WRITES = ("insert", "update", "delete")
STREAM = 4242  # the number of a change stream's cursor


class Int64(int):
    """A number of 64 bits."""


def decode(data):
    """A document's bytes as a dict."""
    at, out = 4, {}
    sizes = {1: "<d", 8: "<?", 9: "<q", 16: "<i", 17: "<Q", 18: "<q"}
    while data[at]:
        kind = data[at]
        end = data.index(b"\0", at + 1)
        name, at = data[at + 1:end].decode(), end + 1
        if kind in sizes:
            value = struct.unpack_from(sizes[kind], data, at)[0]
            at += struct.calcsize(sizes[kind])
            out[name] = Int64(value) if kind == 18 else (kind, value) if kind in (9, 17) else value
        elif kind == 10:
            out[name] = None
        elif kind == 7:
            out[name] = (7, data[at:at + 12])
            at += 12
        else:
            n = struct.unpack_from("<i", data, at)[0]
            if kind in (3, 4):
                value = decode(data[at:at + n])
                out[name] = list(value.values()) if kind == 4 else value
                at += n
            elif kind == 5:
                out[name] = data[at + 5:at + 5 + n]
                at += 5 + n
            else:
                out[name] = data[at + 4:at + 3 + n].decode()
                at += 4 + n
    return out


def element(name, value):
    key = name.encode() + b"\0"
    if isinstance(value, bool):
        return b"\x08" + key + struct.pack("<?", value)
    if isinstance(value, Int64):
        return b"\x12" + key + struct.pack("<q", value)
    if isinstance(value, int):
        return b"\x10" + key + struct.pack("<i", value)
    if isinstance(value, float):
        return b"\x01" + key + struct.pack("<d", value)
    if isinstance(value, str):
        text = value.encode() + b"\0"
        return b"\x02" + key + struct.pack("<i", len(text)) + text
    if isinstance(value, bytes):
        return b"\x05" + key + struct.pack("<iB", len(value), 0) + value
    if isinstance(value, tuple):
        kind, what = value
        return bytes([kind]) + key + (what if kind == 7 else struct.pack("<q", what))
    if value is None:
        return b"\x0a" + key
    if isinstance(value, list):
        return b"\x04" + key + encode({str(i): v for i, v in enumerate(value)})
    return b"\x03" + key + encode(value)


def encode(document):
    body = b"".join(element(name, value) for name, value in document.items()) + b"\0"
    return struct.pack("<i", 4 + len(body)) + body


def read_all(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise OSError("closed")
        data += piece
    return data


def read_message(s):
    head = read_all(s, 16)
    size, number, _, code = struct.unpack("<iiii", head)
    return number, code, head + read_all(s, size - 16)


def answer(number, code, document):
    """The bytes of an answer to a message of that code."""
    if code == OP_QUERY:
        body = struct.pack("<iqii", 8, 0, 0, 1) + encode(document)
        return struct.pack("<iiii", 16 + len(body), 0, number, OP_REPLY) + body
    body = struct.pack("<iB", 0, 0) + encode(document)
    return struct.pack("<iiii", 16 + len(body), 0, number, OP_MSG) + body


class Login:
    """One client's way in, from the server's side: a SCRAM-SHA-256 conversation, PLAIN, or the name
    in its certificate."""

    def __init__(self, users, source):
        self.users = users
        self.source = source  # the database that the users are of
        self.certified = ""  # the subject of its certificate
        self.is_in = False
        self.first = self.said = self.user = ""
        self.salt = os.urandom(28)

    def start(self, payload, database):
        if database != self.source:
            return self.refusal()
        self.first = payload.decode().partition(",,")[2]
        fields = dict(part.split("=", 1) for part in self.first.split(","))
        self.user = fields["n"]
        salt = base64.b64encode(self.salt).decode()
        self.said = f"r={fields['r']}stand-in,s={salt},i=4096"
        return {"conversationId": 1, "done": False, "payload": self.said.encode(), "ok": 1.0}

    def certificate(self, command):
        asked = command.get("user", self.certified)
        self.is_in = command["mechanism"] == "MONGODB-X509" and command["$db"] == "$external" and (
            asked == self.certified and asked in self.users)
        return {"user": asked, "ok": 1.0} if self.is_in else self.refusal()

    def plain(self, command):
        payload = command["payload"]
        if isinstance(payload, str):
            payload = base64.b64decode(payload)
        _, user, password = payload.decode().split("\0")
        self.is_in = command["$db"] == "$external" and self.users.get(user) == password
        return {"conversationId": 1, "done": True, "payload": b"", "ok": 1.0} if (
            self.is_in) else self.refusal()

    @staticmethod
    def refusal():
        return {"ok": 0.0, "code": 18, "errmsg": "Authentication failed."}

    def proceed(self, payload):
        text, _, proof = payload.decode().rpartition(",p=")
        salted = hashlib.pbkdf2_hmac("sha256", self.users.get(self.user, "\0").encode(), self.salt,
                                     4096)
        message = f"{self.first},{self.said},{text}".encode()

        def mac(key, what):
            return hmac.digest(key, what, "sha256")
        stored = hashlib.sha256(mac(salted, b"Client Key")).digest()
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), mac(stored, message)))
        self.is_in = hashlib.sha256(key).digest() == stored
        if not self.is_in:
            return self.refusal()
        sign = base64.b64encode(mac(mac(salted, b"Server Key"), message))
        return {"conversationId": 1, "done": True, "payload": b"v=" + sign, "ok": 1.0}


class Member:
    def __init__(self, backend, users=None, hosts=None, tls=None, source="baton"):
        """tls: the folder of its certificate and the authority's; then the server has TLS, too."""
        self.backend = int(backend)
        self.inward = self.onward = None
        if tls:
            self.inward = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.inward.load_cert_chain(f"{tls}/server.crt", f"{tls}/server.key")
            self.inward.load_verify_locations(f"{tls}/ca.crt")
            self.inward.verify_mode = ssl.CERT_OPTIONAL
            self.onward = ssl.create_default_context(cafile=f"{tls}/ca.crt")
        self.users = users or {}
        self.source = source
        self.may_write = True  # the users' right
        self.is_primary = True
        self.inject = []  # what becomes of the next writes: a function of (self, message) -> answer
        self.version = ""  # what it says of itself; empty: what the server behind it says
        self.ferret = {}  # the same, of FerretDB
        self.careless = []  # writes that ask for less than a majority with journal
        self.indexes = []  # of the collection, beside that of _id
        self.counts = collections.Counter()
        self.events = []
        self.changed = threading.Condition()
        self.sockets = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.hosts = hosts if hosts is not None else []
        self.hosts.append(f"127.0.0.1:{self.port}")
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                one = self.listener.accept()[0]
                self.sockets.append(one)
            except OSError:
                return
            threading.Thread(target=self.serve, args=(one,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.sockets:
            one.close()

    def step_down(self, other):
        self.is_primary, other.is_primary = False, True

    def backend_socket(self):
        bare = socket.create_connection(("127.0.0.1", self.backend))
        return self.onward.wrap_socket(bare, server_hostname="localhost") if self.onward else bare

    def serve(self, client):
        login = Login(self.users, self.source)
        try:
            if self.inward:
                client = self.inward.wrap_socket(client, server_side=True)
                self.sockets.append(client)
                login.certified = ",".join(
                    f"CN={value}" for part in (client.getpeercert() or {}).get("subject", ())
                    for name, value in part if name == "commonName")
            with self.backend_socket() as server:
                while True:
                    number, code, whole = read_message(client)
                    at = whole.index(b"\0", 20) + 9 if code == OP_QUERY else 21
                    command = decode(whole[at:])
                    said = self.handle(command, login, server, whole, client)
                    if isinstance(said, bytes):
                        client.sendall(said)
                    elif said is not None:
                        client.sendall(answer(number, code, said))
        except (OSError, ValueError):
            client.close()

    def handle(self, command, login, server, whole, client):
        """The answer: a document, or bytes of the server's. None: there is none."""
        verb = next(iter(command))
        self.counts[verb] += 1
        if verb in ("isMaster", "ismaster", "hello"):
            server.sendall(whole)
            _, code, said = read_message(server)
            return self.hello(decode(said[36 if code == OP_REPLY else 21:]), command)
        if verb == "authenticate":
            return login.certificate(command)
        if verb == "saslStart" and command["mechanism"] == "PLAIN":
            return login.plain(command)
        if verb == "saslStart":
            return login.start(command["payload"], command["$db"])
        if verb == "saslContinue":
            return login.proceed(command["payload"])
        if self.users and not login.is_in:
            return {"ok": 0.0, "code": 13, "errmsg": f"command {verb} requires authentication"}
        if verb in WRITES and not self.may_write:
            return {"ok": 0.0, "code": 13, "errmsg": f"not authorized on baton to execute {verb}"}
        if verb in WRITES and not self.is_primary:
            return {"ok": 0.0, "code": 10107, "errmsg": "not primary"}
        if verb == "buildInfo" and self.version:
            return {"version": self.version, **self.ferret, "ok": 1.0}
        if verb == "listIndexes":
            return {"cursor": {"id": Int64(0), "ns": "baton.baton", "firstBatch": [
                {"v": 2, "key": {"_id": 1}, "name": "_id_"}, *self.indexes]}, "ok": 1.0}
        if verb == "aggregate" or command.get("getMore") == STREAM:
            return self.stream(command, client)
        return self.carry_out(verb, command, server, whole)

    def carry_out(self, verb, command, server, whole):
        what = self.inject.pop(0) if verb in WRITES and self.inject else None
        concern = command.get("writeConcern", {})
        if verb in WRITES and (concern.get("w"), concern.get("j")) != ("majority", True):
            self.careless.append(command)
        if command.get("readConcern", {}).get("level") == "linearizable":
            self.counts["linearizable"] += 1
        if what == "not primary":  # before it began
            return {"ok": 0.0, "code": 10107, "errmsg": "not primary"}
        server.sendall(whole)
        said = read_message(server)[2]
        if verb in WRITES:
            with self.changed:
                self.events += [q.get("_id") or q["q"]["_id"] for q in command.get(
                    "documents" if verb == "insert" else verb + "s", [])]
                self.changed.notify_all()
        if what == "no majority":
            return {**decode(said[21:]), "writeConcernError": {
                "code": 64, "errmsg": "waiting for replication timed out"}}
        if what == "stepped down":  # it was carried out, and the answer says otherwise
            return {"ok": 0.0, "code": 189, "errmsg": "primary stepped down"}
        if what == "cut":
            raise OSError("by the test")
        return said

    def hello(self, said, command):
        said.update({"setName": "rs0", "hosts": list(self.hosts), "setVersion": 1,
                     "me": f"127.0.0.1:{self.port}", "ismaster": self.is_primary,
                     "secondary": not self.is_primary})
        if "saslSupportedMechs" in command:
            said["saslSupportedMechs"] = ["SCRAM-SHA-256"]
        return said

    def stream(self, command, client):
        """From the first call on; waits for a change, the client's time, or the client's end."""
        with self.changed:
            if "aggregate" in command:
                client_at[client] = len(self.events)
                return batch("firstBatch", [])
            until = time.monotonic() + command.get("maxTimeMS", 1000) / 1000
            while len(self.events) == client_at[client] and time.monotonic() < until:
                self.changed.wait(min(0.05, max(0.001, until - time.monotonic())))
                if select.select([client], [], [], 0)[0]:
                    raise OSError("gone")
            news = self.events[client_at[client]:]
            client_at[client] = len(self.events)
        return batch("nextBatch", [{"_id": {"n": i}, "documentKey": {"_id": key}}
                                   for i, key in enumerate(news) if key.startswith("e/")])


client_at = {}  # of each connection: how many events its stream has seen


def batch(name, documents):
    return {"cursor": {"id": Int64(STREAM), "ns": "baton.baton", name: documents}, "ok": 1.0}
