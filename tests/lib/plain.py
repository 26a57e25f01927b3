#!/usr/bin/env python3
# plain.py PORT SERVER-PORT CA: lets those who look into requests (tests/relay) stand in front of a
# server that speaks TLS only: takes plain connections on a port of 127.0.0.1, and passes the bytes
# on to the server on the other, with TLS and its certificate verified.
import asyncio
import ssl
import sys


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except (OSError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def main(port, server_port, ca):
    trust = ssl.create_default_context(cafile=ca)

    async def take(reader, writer):
        try:
            there = await asyncio.open_connection("127.0.0.1", server_port, ssl=trust)
        except (OSError, ssl.SSLError):
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(take, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
