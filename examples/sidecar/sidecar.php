<?php
// sidecar.php: a PHP program beside `baton serve`. The connection is the work: while the connection
// is open and the deadline is ahead, the program works; when the program ends, the next one leads.
//
//     baton serve web &
//     php sidecar.php web /run/baton/serve.sock

[, $election, $path] = [...$argv, '/run/baton/serve.sock'];
$lead = stream_socket_client("unix://$path", $code, $why) or exit("$path: $why\n");
fwrite($lead, "POST /v1/elections/$election/lead?renewed=1 HTTP/1.0\r\nHost: baton\r\n" .
	"Content-Type: application/json\r\nBaton-Request: 1\r\n" .
	"Accept: application/x-ndjson\r\n\r\n");
stream_set_timeout($lead, 0, 100000);

// The clock of the deadlines, CLOCK_BOOTTIME, to 10 ms.
function now_ns(): int { return (int) round((float) file_get_contents('/proc/uptime') * 1e9); }

$deadline = $term = 0;
while (true) {
	$line = fgets($lead);
	if ($line === false && feof($lead)) {
		break; // the sidecar is gone
	}
	if (preg_match('~^HTTP/\S+ (?!200)~', (string) $line)) {
		exit($line);
	}
	$event = json_decode((string) $line, true);
	switch ($event['event'] ?? '') {
	case 'became':
	case 'renewed':
		[$deadline, $term] = [(int) $event['deadline_boot_ns'], $event['term']];
		break;
	case 'lost':
		exit; // closes the connection: the leadership is free
	}
	if ($line === false && $deadline > now_ns()) {
		echo "term $term works\n"; // one short step of the work
	}
}
