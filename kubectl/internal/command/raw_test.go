package command

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kctl/kubectl/internal/command/frame"
)

// TestRaw: the path is requested as it was typed, including `?verbose` without
// a value, and the body is sent unchecked.
func TestRaw(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if accepts := r.Header.Get("Accept"); accepts != "application/json, */*" {
			t.Errorf("%s accepts %q", r.URL, accepts) // not everything served is JSON
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %t %q %s %s", r.Method, r.URL.Path, r.URL.Query().Has("verbose"), r.URL.Query()["exclude"], r.Header.Get("Content-Type"), body)
	}))
	t.Cleanup(server.Close)
	for _, test := range []struct {
		args  []string
		wants string // in what is printed, or in the error
		code  int
	}{
		{[]string{"get", "--raw=/livez?verbose&exclude=etcd&exclude=ping"}, `GET /livez true ["etcd" "ping"]  `, frame.ExitOK},
		{[]string{"get", "--raw=/api?x=%zz&a=1;b=2&exclude=1"}, `GET /api false ["1"]  `, frame.ExitOK},
		{[]string{"create", "--raw=/apis/x?exclude=1", "-f", "-"}, `POST /apis/x false ["1"] application/json {"some":thing`, frame.ExitOK},
		{[]string{"replace", "--raw=/apis/x", "-f", "-"}, `PUT /apis/x false [] application/json {"some":thing`, frame.ExitOK},
		{[]string{"delete", "--raw=/apis/x", "-f", "-"}, `DELETE /apis/x false [] application/json {"some":thing`, frame.ExitOK},
		{[]string{"delete", "--raw=/apis/x"}, `DELETE /apis/x false []  `, frame.ExitOK},
		{[]string{"create", "--raw=/x"}, "must specify one of -f and -k", 1},
		{[]string{"replace", "--raw=/x", "-f", "a", "-f", "b"}, "--raw can only use a single local file or stdin", 1},
		{[]string{"replace", "--raw=/x", "-f", "https://a"}, "--raw cannot read from a url", 1},
		{[]string{"delete", "--raw=/x", "-l", "a=b"}, "--raw and --selector (-l) are mutually exclusive", 1},
		{[]string{"delete", "--raw=/x", "y"}, "arguments may not be passed when --raw is specified", 1},
		{[]string{"create", "--raw=/x", "-f", "-", "-o", "yaml"}, "--raw and --output are mutually exclusive", 1},
		{[]string{"get", "--raw=%zz"}, `--raw must be a valid URL path: parse "%zz"`, 1},
	} {
		c := kctl(t, server.URL, `{"some":thing`, test.args...)
		if test.code != frame.ExitOK {
			c.want(t, test.code, test.wants)
			continue
		}
		c.want(t, frame.ExitOK)
		if got := c.out.String(); got != test.wants {
			t.Errorf("%v: asked for %q, want %q", test.args, got, test.wants)
		}
	}
}

// TestRawAnswersGoOn: an answer without an end, such as a watch or a
// container's, is printed as it comes, and is not kept in memory.
func TestRawAnswersGoOn(t *testing.T) {
	printed := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-printed:
			fmt.Fprint(w, " and last")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	out := &first{told: printed}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cli := frame.New(frame.Streams{In: strings.NewReader(""), Out: out, Err: io.Discard}, clock.RealClock{})
	code := run(ctx, cli, []string{"--cache-dir", t.TempDir(), "--server", server.URL, "get", "--raw=/x"})
	if code != frame.ExitOK || out.text != "first and last" {
		t.Errorf("exit code %d, printed %q", code, out.text)
	}
}

// first reports the first write.
type first struct {
	text string
	told chan string
}

func (f *first) Write(text []byte) (int, error) {
	if f.text == "" {
		close(f.told)
	}
	f.text += string(text)
	return len(text), nil
}
