// Package onhosts starts a command as ranks on plain machines, by ssh: "gnb launch". On each host ssh starts
// "gnb on-host", which greets the launcher, gets its orders, starts the host's ranks with torchrun's variables
// ([cluster.Detect] reads them), and ends them when its standard input ends. So they end with the launcher, however it
// ends.
package onhosts

import (
	"strconv"
	"strings"

	"github.com/graphnb/graphnb/gnb/cmd/gnb/internal/cli"
)

// host is a machine on which ranks start.
type host struct {
	name  string // as ssh takes it
	ranks int
}

// mostRanks is the most ranks of a host, and mostHosts the most hosts.
const mostRanks, mostHosts = 1024, 512

// parseHosts reads a list such as "a,user@b:4". A host in brackets is an address of IPv6.
func parseHosts(list string) (hosts []host, err error) {
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		name, count := word, "1"
		if i := strings.LastIndexByte(word, ':'); i >= 0 && (strings.Count(word, ":") == 1 || word[i-1] == ']') {
			name, count = word[:i], word[i+1:]
		}
		name = strings.NewReplacer("[", "", "]", "").Replace(name)
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > mostRanks || name == "" || name[0] == '-' || strings.Contains(name, "@-") || strings.ContainsAny(name, " \t\r\n'\"\\") {
			return nil, cli.Usagef("--hosts has %q; it is a list of HOST or HOST:RANKS, with 1 to %d ranks", word, mostRanks)
		}
		hosts = append(hosts, host{name, n})
	}
	if len(hosts) > mostHosts {
		return nil, cli.Usagef("--hosts has %d hosts; it takes at most %d", len(hosts), mostHosts)
	}
	return hosts, nil
}

// world is the number of ranks.
func world(hosts []host) (n int) {
	for _, h := range hosts {
		n += h.ranks
	}
	return n
}
