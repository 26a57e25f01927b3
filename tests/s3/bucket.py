# bucket.py - what tests/s3/run has beside a real server, all on loopback: a way to it that counts
# requests and gives answers that no server here gives, a bucket in memory that may be as bad as it
# likes, and the services that hand out credentials.
import datetime
import hashlib
import http.client
import http.server
import json
import threading
import time
import urllib.parse

RENEW_S = 3600


def error(code, more=""):
    return (f"<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>it is so</Message>{more}"
            "</Error>")


def in_future(seconds):
    then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


class Service(http.server.ThreadingHTTPServer):
    """An HTTP server whose answers are those of answer(method, path, headers, body)."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        self.seen = [] # (method, path, headers)
        self.mutex = threading.Lock()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def close(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Whoever asked has given up: that is its right."""

    def counted(self, method=None, word=""):
        with self.mutex:
            return sum((method in (None, m)) and word in p for m, p, _ in self.seen)

    def answer(self, method, path, headers, body):
        raise NotImplementedError


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.mutex:
            self.server.seen.append((self.command, self.path, dict(self.headers)))
        status, headers, text = self.server.answer(self.command, self.path, self.headers, body)
        data = text if isinstance(text, bytes) else text.encode()
        self.send_response_only(status)
        for name, value in {"Date": self.date_time_string(), **headers}.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if status not in (204, 304):
            self.wfile.write(data)

    do_GET = do_PUT = do_DELETE = do_POST = reply

    def log_message(self, *_):
        pass


class Way(Service):
    """A way to a real server. inject(method, path, headers) may answer instead of it."""

    def __init__(self, port):
        self.port = port
        self.inject = lambda *_: None
        self.local = threading.local()
        super().__init__()

    def answer(self, method, path, headers, body):
        instead = self.inject(method, path, headers)
        if instead is not None:
            return instead
        if not hasattr(self.local, "link"):
            self.local.link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link = self.local.link
        try:
            # As it is, the Host, too: it is signed.
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                link.putheader(name, value)
            link.endheaders(body)
            got = link.getresponse()
            text = got.read()
        except (OSError, http.client.HTTPException):
            del self.local.link
            raise
        keep = {k: v for k, v in got.getheaders()
                if k.lower() not in ("content-length", "connection", "date", "server")}
        return got.status, keep, text


class Bucket(Service):
    """A bucket `baton` in memory. It checks no signature, but who signed, if `keys` says so."""

    def __init__(self, ignores=False):
        self.objects = {}
        self.ignores = ignores # conditions
        self.settings = {} # what is behind ?versioning and the like
        self.keys = None # id: (session token, until when)
        self.denied = () # methods that nobody has the right to
        super().__init__()

    def refusal(self, headers):
        word = headers.get("Authorization", "").partition("Credential=")[2].split("/")[0]
        if self.keys is None:
            return None
        if word not in self.keys:
            return 403, {}, error("InvalidAccessKeyId")
        token, until = self.keys[word]
        if headers.get("x-amz-security-token", "") != token:
            return 403, {}, error("InvalidToken")
        return (400, {}, error("ExpiredToken")) if time.time() > until else None

    def answer(self, method, path, headers, body):
        refused = self.refusal(headers)
        path, _, query = path.partition("?")
        if refused:
            return refused
        if method in self.denied:
            return 403, {}, error("AccessDenied")
        if path.count("/") == 1: # the bucket itself
            return self.answer_bucket(query)
        with self.mutex:
            return self.answer_object(method, path, headers, body)

    def answer_bucket(self, query):
        if not query.startswith(("list-type", "continuation")):
            text = self.settings.get(query.rstrip("="))
            return (200, {}, text) if text else (404, {}, error("NoSuchConfiguration"))
        prefix = dict(urllib.parse.parse_qsl(query)).get("prefix", "")
        with self.mutex:
            all_of_them = "".join(
                f"<Contents><Key>{k[7:]}</Key><LastModified>{in_future(0)}</LastModified>"
                f"<ETag>&quot;{hashlib.md5(v).hexdigest()}&quot;</ETag></Contents>"
                for k, v in self.objects.items() if k[7:].startswith(prefix))
        return 200, {}, (f"<ListBucketResult><IsTruncated>false</IsTruncated>{all_of_them}"
                         "</ListBucketResult>")

    def answer_object(self, method, path, headers, body):
        path = urllib.parse.unquote(path)
        old = self.objects.get(path)
        tag = old is not None and f'"{hashlib.md5(old).hexdigest()}"'
        if method == "PUT":
            if not self.ignores and "If-None-Match" in headers and old is not None:
                return 412, {}, error("PreconditionFailed")
            if not self.ignores and headers.get("If-Match", tag) != tag:
                return (412 if old is not None else 404), {}, error("PreconditionFailed")
            self.objects[path] = body
            return 200, {"ETag": f'"{hashlib.md5(body).hexdigest()}"'}, ""
        if old is None:
            return 404, {}, error("NoSuchKey")
        if method == "DELETE":
            del self.objects[path]
            return 204, {}, ""
        if headers.get("If-None-Match") == tag:
            return 304, {"ETag": tag}, ""
        return 200, {"ETag": tag, "Last-Modified": self.date()}, old

    @staticmethod
    def date():
        return datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")


class Roles(Service):
    """STS, a container's endpoint and an instance's metadata in one. Each answer has other keys,
    which the bucket takes from then on, for as long as `seconds`."""

    def __init__(self, bucket, secret, seconds=RENEW_S):
        self.bucket, self.secret, self.seconds = bucket, secret, seconds
        self.bucket.keys = {}
        self.n = 0
        super().__init__()

    def new(self, kind):
        with self.mutex:
            self.n += 1
            name = f"{kind}{self.n}"
        token = f"{self.secret}/+={name}"
        self.bucket.keys[name] = (token, time.time() + self.seconds)
        return {"AccessKeyId": name, "SecretAccessKey": self.secret, "Token": token,
                "Expiration": in_future(self.seconds)}

    def answer(self, method, path, headers, body):
        fields = dict(urllib.parse.parse_qsl(body.decode()))
        if method == "POST" and fields.get("Action") == "AssumeRoleWithWebIdentity":
            if fields["WebIdentityToken"] != self.secret + "-web" or \
                    fields["RoleArn"] != "arn:aws:iam::1:role/r":
                return 403, {}, f"<ErrorResponse>{error('AccessDenied')[21:]}</ErrorResponse>"
            keys = self.new("STS")
            keys["SessionToken"] = keys.pop("Token")
            inner = "".join(f"<{k}>{v}</{k}>" for k, v in keys.items())
            return 200, {}, (f"<R><Result><Credentials>{inner}</Credentials></Result></R>")
        if path == "/task" and headers.get("Authorization") == self.secret + "-task":
            return 200, {}, json.dumps(self.new("ECS"))
        if path == "/latest/api/token" and method == "PUT" and \
                headers.get("X-aws-ec2-metadata-token-ttl-seconds"):
            return 200, {}, self.secret + "-imds"
        if headers.get("X-aws-ec2-metadata-token") != self.secret + "-imds":
            return 401, {}, ""
        if path == "/latest/meta-data/iam/security-credentials/":
            return 200, {}, "my-role"
        if path.endswith("/security-credentials/my-role"):
            return 200, {}, json.dumps({"Code": "Success", **self.new("EC2")})
        return 404, {}, ""
