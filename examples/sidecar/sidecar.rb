#!/usr/bin/env ruby
# sidecar.rb: a Ruby program beside `baton serve`. The connection is the work: while the connection
# is open and the deadline is ahead, the program works; when the program ends, the next one leads.
#
#     baton serve web &
#     ./sidecar.rb web /run/baton/serve.sock
require 'json'
require 'socket'

election, path = ARGV[0], ARGV[1] || '/run/baton/serve.sock'
$stdout.sync = true

lead = UNIXSocket.new(path)
lead.write("POST /v1/elections/#{election}/lead?renewed=1 HTTP/1.0\r\nHost: baton\r\n" \
           "Content-Type: application/json\r\nBaton-Request: 1\r\n" \
           "Accept: application/x-ndjson\r\n\r\n")

deadline, term, text = 0, nil, +''
loop do
  if lead.wait_readable(0.1)
    text << lead.readpartial(4096) # EOFError: the sidecar is gone
    while (line = text.slice!(/\A.*\n/))
      abort line if line.match?(%r{\AHTTP/\S+ (?!200)})
      event = line.start_with?('{') ? JSON.parse(line) : {}
      exit if event['event'] == 'lost' # closes the connection: the leadership is free
      next unless %w[became renewed].include?(event['event'])
      deadline, term = Integer(event['deadline_boot_ns']), event['term']
    end
  elsif deadline > Process.clock_gettime(Process::CLOCK_BOOTTIME, :nanosecond)
    puts "term #{term} works" # one short step of the work
  end
rescue EOFError
  exit
end
