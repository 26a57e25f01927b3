#!/usr/bin/perl
# sidecar.pl: a Perl program beside `baton serve`. The connection is the work: while the connection
# is open and the deadline is ahead, the program works; when the program ends, the next one leads.
#
#     baton serve web &
#     ./sidecar.pl web /run/baton/serve.sock
use strict;
use warnings;
use IO::Socket::UNIX;
use Time::HiRes qw(clock_gettime);

my ($election, $path) = (@ARGV, '/run/baton/serve.sock');
my $BOOT = 7; # CLOCK_BOOTTIME of Linux, the clock of the deadlines
$| = 1;

my $lead = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!\n";
print $lead "POST /v1/elections/$election/lead?renewed=1 HTTP/1.0\r\nHost: baton\r\n",
	"Content-Type: application/json\r\nBaton-Request: 1\r\n",
	"Accept: application/x-ndjson\r\n\r\n";
$lead->flush;

my ($deadline, $term, $text) = (0, 0, '');
while (1) {
	vec(my $set = '', fileno($lead), 1) = 1;
	if (select($set, undef, undef, 0.1) > 0) {
		sysread($lead, $text, 4096, length $text) or last; # the sidecar is gone
		while ($text =~ s/^(.*)\n//) {
			my $event = $1;
			exit if $event =~ /"lost"/; # closes the connection: the leadership is free
			die "$event\n" if $event =~ m{^HTTP/} && $event !~ / 200 /;
			next unless $event =~ /"became"|"renewed"/;
			($deadline) = $event =~ /"deadline_boot_ns":"(\d+)"/;
			($term) = $event =~ /"term":"(\d+)"/;
		}
	} elsif ($deadline > clock_gettime($BOOT) * 1e9) {
		print "term $term works\n"; # one short step of the work
	}
}
