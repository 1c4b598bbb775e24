package delegatedauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"kctl/proto/eventually"
)

// Strangers who keep the API server busy do not keep others waiting, and wait in bounded numbers.
func TestStrangersHoldUpNobodyElse(t *testing.T) {
	authority := newAuthority(t)
	a := &api{published: published(map[string]string{keyClients: string(authority.Cert)})}
	s := newScene(t, a, nil)
	if err := s.guard.LookUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	withToken := func(token string) *http.Request {
		r := request(t, nil, "")
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	s.answered("a token", withToken("reader"), 200)
	s.clock.Step(NewOptions().TokenTTL) // all has to be asked again

	const queued = strangersAtOnce + 4
	s.guard.reviews.strangers = newTurns(strangersAtOnce, queued)
	held, release := make(chan struct{}, queued), make(chan struct{})
	a.hold = func() {
		held <- struct{}{}
		<-release
	}
	var strangers sync.WaitGroup
	t.Cleanup(strangers.Wait)
	t.Cleanup(func() { close(release) })
	handler := s.guard.Protect(http.NotFoundHandler())
	for i := range queued {
		r := request(t, nil, "")
		if r.URL.Path = fmt.Sprintf("/%d", i); i%2 == 0 {
			r = withToken(fmt.Sprintf("stranger-%d", i))
		}
		strangers.Go(func() { handler.ServeHTTP(httptest.NewRecorder(), r) })
	}
	for range strangersAtOnce {
		<-held
	}
	eventually.Holds(t, "the others wait for their turn", func() bool { return len(s.guard.reviews.strangers.queued) == queued })
	s.answered("a client", request(t, authority, "reader"), 200)
	s.answered("a token that was good", withToken("reader"), 200)
	s.answered("one more without a credential", request(t, nil, ""), 500)
	s.answered("one more token", withToken("new"), 401)
	if len(held) > 0 {
		t.Error("more questions about strangers are under way than may be")
	}
}

// However much strangers ask, what is known of others stays.
func TestStrangersDriveNoAnswerOut(t *testing.T) {
	s := newScene(t, &api{}, nil)
	reader := request(t, nil, "")
	reader.Header.Set("Authorization", "Bearer reader")
	s.answered("first", reader, 200)
	for i := range answers + 1 {
		r := request(t, nil, "")
		r.URL.Path = fmt.Sprintf("/%d", i)
		s.answered("no credential", r, 403)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer bad-%d", i))
		s.answered("a bad token", r, 401)
	}
	s.api.asked = nil
	if s.answered("again", reader, 200); len(s.api.asked) > 0 {
		t.Errorf("asked again: %q", s.api.asked)
	}
}
