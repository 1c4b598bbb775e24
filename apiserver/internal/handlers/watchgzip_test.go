package handlers_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCompressedWatch: a watch that stands for a list is compressed as the list
// is; each event can be read as soon as it is there, and later ones, too.
func TestCompressedWatch(t *testing.T) {
	s := start(t)
	for i := range 50 {
		s.create(fmt.Sprintf("a%02d", i), "1")
	}
	const list = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	body, counted := s.openWatch(list, "gzip", "gzip")
	unpacked, err := gzip.NewReader(body)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(unpacked)
	length := 0
	next := func(kind, name string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		length += len(line)
		if err != nil || !strings.HasPrefix(line, `{"type":"`+kind+`"`) || !strings.Contains(line, name) {
			t.Fatalf("%v, %.100s; want %s %s", err, line, kind, name)
		}
	}
	for i := range 50 {
		next("ADDED", fmt.Sprintf(`"name":"a%02d"`, i))
	}
	next("BOOKMARK", "initial-events-end")
	if *counted > length/2 {
		t.Errorf("%d bytes for %d", *counted, length)
	}
	for _, name := range []string{"c", "d"} {
		s.create(name, "1")
		next("ADDED", `"name":"`+name+`"`)
	}
	s.openWatch(list, "gzip;q=0", "")
	s.openWatch(list, "identity", "")
	s.openWatch("", "gzip", "")
}

// openWatch opens a watch, which wants to be encoded in such a way, and counts
// the bytes that are read of it.
func (s *server) openWatch(query, accept, want string) (io.Reader, *int) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.URL+collection+"?watch=true"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", accept)
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if got := res.Header.Get("Content-Encoding"); res.StatusCode != http.StatusOK || got != want {
		s.t.Errorf("%s%s: %s, encoded as %q, want %q", accept, query, res.Status, got, want)
	}
	counted := 0
	return io.TeeReader(res.Body, writerFunc(func(p []byte) { counted += len(p) })), &counted
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
