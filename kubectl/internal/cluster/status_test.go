package cluster

import (
	"context"
	"errors"
	"net/url"
	"testing"
)

// A program that hangs is told from one that says what it lacks.
func TestWhyAProgramIsNotReady(t *testing.T) {
	l := Layout{Dir: "/srv/two one"}
	for want, err := range map[string]error{
		"":                  nil,
		"[-]etcd not ready": errors.New("[-]etcd not ready"),
		"no answer within 3s; if it hangs, end it with `kill -9 7`, and \"kctl up --dir '/srv/two one'\" starts it anew": &url.Error{
			Op: "Get", URL: "https://127.0.0.1:1", Err: context.DeadlineExceeded,
		},
	} {
		if got := l.whyNotReady(7, err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

// Of a report with forty lines, those are shown that say what is wrong.
func TestFailures(t *testing.T) {
	for report, want := range map[string]string{
		"[+]ping ok\n[-]etcd failed: no answer\n[+]log ok\n[-]storage failed: pods\nreadyz check failed\n": "etcd failed: no answer; storage failed: pods",
		"no such page\n": "no such page",
	} {
		if got := failures(report); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
