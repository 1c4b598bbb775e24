package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// briefServer notes by which connections requests come. The first of them are
// answered when there are many.
type briefServer struct {
	many chan struct{}

	mu     sync.Mutex
	from   map[string]int // requests by connection
	before int
}

func (s *briefServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.from[r.RemoteAddr]++
	if s.before++; s.before == manyBrief {
		close(s.many)
	}
	s.mu.Unlock()
	<-s.many
	body, _ := io.ReadAll(r.Body)
	switch string(body) {
	case "refuse":
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(&metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict})
	case "long":
		_, _ = io.WriteString(w, strings.Repeat("x", 200_000))
	default:
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Own"), body)
	}
}

// TestBrief: brief requests are answered as others are, and when there are many,
// they go by a connection of their own.
func TestBrief(t *testing.T) {
	for name, speaksHTTP2 := range map[string]bool{"HTTP/2": true, "HTTP/1.1 only": false} {
		t.Run(name, func(t *testing.T) {
			s := &briefServer{many: make(chan struct{}), from: map[string]int{}}
			server := httptest.NewUnstartedServer(s)
			server.EnableHTTP2 = speaksHTTP2
			server.StartTLS()
			defer server.Close()
			c, err := New(&Config{Host: server.URL, Insecure: true, BearerToken: "secret"})
			if err != nil {
				t.Fatal(err)
			}
			defer c.HTTP().CloseIdleConnections()
			askMuch(t, c, 1)
			if speaksHTTP2 {
				for c.lines.get() == nil { // it is being opened
					runtime.Gosched()
				}
				clear(s.from)
			}
			askMuch(t, c, 20)
			if speaksHTTP2 && len(s.from) != 1 {
				t.Errorf("requests by connection: %v", s.from)
			}
		})
	}
}

// askMuch has many send brief requests at one time.
func askMuch(t *testing.T, c *Client, times int) {
	var wg sync.WaitGroup
	for caller := range 2 * manyBrief {
		wg.Go(func() {
			for i := range times {
				own := fmt.Sprintf("%d-%d", caller, i)
				ask := func(body string) (string, error) {
					var got []byte
					err := c.Do(t.Context(), http.MethodPost, "/p/"+own, []byte(body), &got, Brief(), Header("Own", own), Query("a", "b c"))
					return string(got), err
				}
				want := "POST /p/" + own + "?a=b+c Bearer secret " + own + " {}"
				if got, err := ask("{}"); got != want || err != nil {
					t.Errorf("answered %q, %v; want %q", got, err, want)
				}
				if _, err := ask("refuse"); !apierrors.IsConflict(err) {
					t.Errorf("refused with %v", err)
				}
				if got, err := ask("long"); len(got) != 200_000 || err != nil {
					t.Errorf("answered %d bytes, %v", len(got), err)
				}
			}
		})
	}
	wg.Wait()
}

// peer is a server that does as it is told.
type peer struct {
	*http2.Framer
	block *strings.Builder
	pack  *hpack.Encoder
	heard chan string // what came, but for requests
}

func (p *peer) answer(id uint32, status string, end bool) {
	p.block.Reset()
	_ = p.pack.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(p.block.String()), EndHeaders: true, EndStream: end})
}

// lineTo returns a line to a peer that does do for each request.
func lineTo(t *testing.T, do func(p *peer, id uint32), settings ...http2.Setting) (*line, *peer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{Framer: http2.NewFramer(theirs, theirs), block: &strings.Builder{}, heard: make(chan string, 100)}
	p.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	p.pack = hpack.NewEncoder(p.block)
	var ends sync.WaitGroup
	ends.Go(func() { p.serve(theirs, do, settings) })
	l, err := newLine(ours, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	ends.Go(l.read)
	t.Cleanup(func() {
		_ = ours.Close()
		_ = theirs.Close()
		ends.Wait()
	})
	if got := <-p.heard; got != "settings taken" {
		t.Fatal(got)
	}
	return l, p
}

func (p *peer) serve(conn net.Conn, do func(p *peer, id uint32), settings []http2.Setting) {
	defer close(p.heard)
	_, _ = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
	_ = p.WriteSettings(settings...)
	for {
		frame, err := p.ReadFrame()
		if err != nil {
			return
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if f.IsAck() {
				p.heard <- "settings taken"
			}
		case *http2.PingFrame:
			p.heard <- fmt.Sprint("ping answered: ", f.IsAck())
		case *http2.RSTStreamFrame:
			p.heard <- fmt.Sprint("given up: ", f.StreamID)
		case *http2.MetaHeadersFrame:
			do(p, f.StreamID)
		}
	}
}

func brief(ctx context.Context, l *line, body string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://server/path", nil)
	if err != nil {
		return "", err
	}
	resp, err := l.roundTrip(r, []byte(body))
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(data)), err
}

func TestLine(t *testing.T) {
	ok := func(p *peer, id uint32) { p.answer(id, "201", true) }
	for name, test := range map[string]struct {
		do       func(p *peer, id uint32)
		settings []http2.Setting
		want     string // the answer, or the error
		usable   bool   // afterwards
	}{
		"answered": {func(p *peer, id uint32) {
			p.answer(id, "200", false)
			_ = p.WriteData(id, false, []byte("he"))
			_ = p.WriteDataPadded(id, true, []byte("llo"), make([]byte, 7))
		}, nil, "200 hello", true},
		"with a word before and headers after": {func(p *peer, id uint32) {
			p.answer(id, "103", false)
			p.answer(id, "200", false)
			p.block.Reset()
			_ = p.pack.WriteField(hpack.HeaderField{Name: "trailer", Value: "x"})
			_ = p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte(p.block.String()), EndHeaders: true, EndStream: true})
		}, nil, "200 ", true},
		"what is nobody's is passed over": {func(p *peer, id uint32) {
			_ = p.WriteData(id+100, true, []byte("x"))
			_ = p.WriteRSTStream(id+100, http2.ErrCodeCancel)
			_ = p.WriteWindowUpdate(id, 1)
			ok(p, id)
		}, nil, "201 ", true},
		"refused":           {func(p *peer, id uint32) { _ = p.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, nil, errElsewhere.Error(), true},
		"given up":          {func(p *peer, id uint32) { _ = p.WriteRSTStream(id, http2.ErrCodeInternal) }, nil, "the server gave the request up: INTERNAL_ERROR", true},
		"without a status":  {func(p *peer, id uint32) { p.answer(id, "", true) }, nil, "answer: its headers can't be read", true},
		"not looked at":     {func(p *peer, id uint32) { _ = p.WriteGoAway(0, http2.ErrCodeNo, nil) }, nil, errElsewhere.Error(), false},
		"the last":          {func(p *peer, id uint32) { _ = p.WriteGoAway(id, http2.ErrCodeNo, nil); ok(p, id) }, nil, "201 ", false},
		"too many":          {ok, []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 0}}, errElsewhere.Error(), true},
		"too large":         {ok, []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 3}}, errElsewhere.Error(), true},
		"a small table":     {ok, []http2.Setting{{ID: http2.SettingHeaderTableSize, Val: 0}}, "201 ", true},
		"an endless answer": {endless, nil, "answer: more than 1048576 bytes", true},
		"no HTTP/2 any more": {func(p *peer, id uint32) {
			_ = p.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, []byte{0xff})
		}, nil, "connection broke: read: ", false},
	} {
		t.Run(name, func(t *testing.T) {
			l, _ := lineTo(t, test.do, test.settings...)
			got, err := brief(t.Context(), l, "body")
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if l.usable() != test.usable {
				t.Errorf("usable %t, want %t", l.usable(), test.usable)
			}
		})
	}
}

func endless(p *peer, id uint32) {
	p.answer(id, "200", false)
	for range maxBriefAnswer/maxBrief + 1 {
		if p.WriteData(id, false, make([]byte, maxBrief)) != nil {
			return
		}
	}
}

// TestLineKeepsItsWord: a server hears what it has to hear.
func TestLineKeepsItsWord(t *testing.T) {
	came := make(chan struct{}, 1)
	l, p := lineTo(t, func(p *peer, _ uint32) {
		_ = p.WritePing(false, [8]byte{1})
		came <- struct{}{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-came; cancel() }()
	if _, err := brief(ctx, l, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	heard := map[string]bool{<-p.heard: true, <-p.heard: true}
	if !heard["ping answered: true"] || !heard["given up: 1"] {
		t.Errorf("the server heard %v", heard)
	}
}

// TestLineWindow: what the server does not take yet goes elsewhere.
func TestLineWindow(t *testing.T) {
	l, _ := lineTo(t, func(p *peer, id uint32) {
		if id == 9 {
			_ = p.WriteWindowUpdate(0, 1)
		}
		p.answer(id, "200", true)
	})
	for i, test := range []struct {
		body int
		want error
	}{{maxBrief + 1, errElsewhere}, {maxBrief, nil}, {maxBrief, nil}, {maxBrief, nil}, {maxBrief, errElsewhere}, {maxBrief - 1, nil}, {0, nil}, {1, nil}, {1, errElsewhere}} {
		if _, err := brief(t.Context(), l, strings.Repeat("x", test.body)); !errors.Is(err, test.want) {
			t.Errorf("request %d: %v, want %v", i, err, test.want)
		}
	}
}

// TestLineBreaks: who waits hears of it, and a line that was silent for long is
// not used again.
func TestLineBreaks(t *testing.T) {
	l, _ := lineTo(t, func(*peer, uint32) {})
	done := make(chan error)
	go func() {
		_, err := brief(t.Context(), l, "x")
		done <- err
	}()
	for {
		l.mu.Lock()
		waits := len(l.exchanges) > 0
		l.mu.Unlock()
		if waits {
			break
		}
		runtime.Gosched()
	}
	_ = l.conn.Close()
	if err := <-done; err == nil || errors.Is(err, errElsewhere) {
		t.Errorf("got %v", err)
	}
	silent, _ := lineTo(t, func(*peer, uint32) {})
	silent.heard.Add(-int64(lineQuiet + time.Second))
	if silent.usable() {
		t.Error("a line that was silent is used again")
	}
}
