package authn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/request"
)

const cacheTTL = 10 * time.Second

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// tokens is an authenticator that knows these tokens; a nil value is an error.
type tokens struct {
	users map[string]*request.User
	calls int
}

func (t *tokens) AuthenticateToken(_ context.Context, token string, _ []string) (*request.User, []string, bool, error) {
	t.calls++
	user, ok := t.users[token]
	if ok && user == nil {
		return nil, nil, false, errors.New("token has expired")
	}
	return user, []string{"api"}, ok, nil
}

func get(header string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return r
}

func TestBearer(t *testing.T) {
	known := &tokens{users: map[string]*request.User{"good": {Username: "jane"}, "old": nil}}
	tests := map[string]struct{ user, err string }{
		"":              {},
		"Basic Zm9v":    {},
		"Bearer ":       {},
		"Bearer good":   {user: "jane"},
		"bearer good":   {user: "jane"},
		"Bearer  good":  {},
		"Bearer good x": {user: "jane"},
		"Bearer old":    {err: "token has expired"},
		"Bearer bad":    {err: "invalid bearer token"},
	}
	for header, want := range tests {
		t.Run(header, func(t *testing.T) {
			user, ok, err := Bearer{known}.Authenticate(get(header))
			check(t, user, ok, err, want.user, want.err)
		})
	}
}

func check(t *testing.T, user *request.User, ok bool, err error, wantUser, wantErr string) {
	t.Helper()
	if ok != (wantUser != "") || ok && user.Username != wantUser {
		t.Errorf("user %+v (%v), want %q", user, ok, wantUser)
	}
	if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
		t.Errorf("error %v, want %q", err, wantErr)
	}
}

func TestUnionAndAnonymous(t *testing.T) {
	first := Bearer{&tokens{users: map[string]*request.User{"one": {Username: "one"}, "both": nil}}}
	second := Bearer{&tokens{users: map[string]*request.User{"two": {Username: "two", Groups: []string{"g"}}, "both": {Username: "two"}}}}
	union := Union{first, second}
	anonymous := &Anonymous{Next: union}
	anonymous.Put(AnonymousRule{Enabled: true})
	tests := map[string]struct{ user, err, anonymous string }{
		"Bearer one":  {user: "one", anonymous: "one"},
		"Bearer two":  {user: "two", anonymous: "two"},
		"Bearer both": {user: "two", anonymous: "two"},
		"Bearer none": {err: "invalid bearer token"},
		"":            {anonymous: "system:anonymous"},
	}
	for header, want := range tests {
		t.Run(header, func(t *testing.T) {
			user, ok, err := union.Authenticate(get(header))
			check(t, user, ok, err, want.user, want.err)
			if ok && !slices.Contains(user.Groups, "system:authenticated") {
				t.Errorf("groups %v lack system:authenticated", user.Groups)
			}
			user, ok, err = anonymous.Authenticate(get(header))
			check(t, user, ok, err, want.anonymous, want.err)
			if ok && user.Username == "system:anonymous" && !slices.Equal(user.Groups, []string{"system:unauthenticated"}) {
				t.Errorf("anonymous is in %v", user.Groups)
			}
		})
	}
}

func TestUnionDoesNotChangeSharedUsers(t *testing.T) {
	shared := &request.User{Username: "jane", Groups: make([]string, 0, 4)}
	union := Union{Bearer{&tokens{users: map[string]*request.User{"t": shared}}}}
	if _, _, err := union.Authenticate(get("Bearer t")); err != nil {
		t.Fatal(err)
	}
	if len(shared.Groups) != 0 {
		t.Errorf("groups of the shared user are %v", shared.Groups)
	}
}

func TestCached(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	next := &tokens{users: map[string]*request.User{"good": {Username: "jane"}}}
	cached := NewCached(next, cacheTTL, clock)
	ask := func(token string, wanted ...string) bool {
		_, _, ok, _ := cached.AuthenticateToken(t.Context(), token, wanted)
		return ok
	}
	for range 3 {
		if !ask("good") {
			t.Fatal("not known")
		}
	}
	if next.calls != 1 {
		t.Errorf("asked %d times, want once", next.calls)
	}
	if ask("good", "vault"); next.calls != 2 {
		t.Error("an answer for one audience was given for another")
	}
	for i, other := range [][]string{{""}, {"", ""}, {"vault", ""}, {"vault\x00"}, {"5:vault"}} {
		if ask("good", other...); next.calls != 3+i {
			t.Errorf("an answer for others was given for %q", other)
		}
	}
	if ask("bad"); ask("bad") || next.calls != 9 {
		t.Errorf("a failure was remembered (%d calls)", next.calls)
	}
	delete(next.users, "good")
	clock.SetTime(start.Add(cacheTTL))
	if ask("good") {
		t.Error("a token outlived the cache's time")
	}
}

// Room is made at the cost of what has expired.
func TestCachedKeepsWhatIsValid(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(start)
	next := &tokens{users: map[string]*request.User{}}
	cached := NewCached(next, cacheTTL, clock)
	ask := func(token string) {
		t.Helper()
		next.users[token] = &request.User{Username: token}
		if _, _, ok, err := cached.AuthenticateToken(t.Context(), token, nil); err != nil || !ok {
			t.Fatalf("%s: %v %v", token, ok, err)
		}
	}
	for i := range cacheSize - 1 {
		ask(fmt.Sprint("old-", i))
	}
	clock.SetTime(start.Add(cacheTTL / 2))
	ask("valid")
	clock.SetTime(start.Add(cacheTTL))
	ask("new")
	asked := next.calls
	if ask("valid"); next.calls != asked || len(cached.entries) != 2 {
		t.Errorf("asked again %d times; %d entries", next.calls-asked, len(cached.entries))
	}
	off := NewCached(next, 0, clock)
	if _, _, _, err := off.AuthenticateToken(t.Context(), "new", nil); err != nil || len(off.entries) > 0 {
		t.Errorf("without a time, %d entries are kept: %v", len(off.entries), err)
	}
}

// The first that knows a token decides, also if another one fails; and one that is put in place
// of others decides from then on.
func TestTokensInTurn(t *testing.T) {
	jane, root := &tokens{users: map[string]*request.User{"a": {Username: "jane"}}},
		&tokens{users: map[string]*request.User{"a": {Username: "root"}, "b": {Username: "root"}}}
	var e ExchangeableTokens
	e.Put(Tokens{jane, root})
	for token, want := range map[string]string{"a": "jane", "b": "root"} {
		if user, _, ok, err := e.AuthenticateToken(t.Context(), token, nil); !ok || err != nil || user.Username != want {
			t.Errorf("%s: %+v %v %v", token, user, ok, err)
		}
	}
	if user, _, ok, _ := e.AuthenticateToken(t.Context(), "c", nil); ok || user != nil {
		t.Errorf("nobody's token is %+v's", user)
	}
	e.Put(Tokens{root})
	if user, _, ok, err := e.AuthenticateToken(t.Context(), "a", nil); !ok || err != nil || user.Username != "root" {
		t.Errorf("of the new ones: %+v %v %v", user, ok, err)
	}
}

func TestCachedIsBounded(t *testing.T) {
	next := &tokens{users: map[string]*request.User{}}
	cached := NewCached(next, cacheTTL, testingclock.NewFakePassiveClock(start))
	for i := range cacheSize + 100 {
		token := fmt.Sprint(i)
		next.users[token] = &request.User{Username: token}
		if _, _, _, err := cached.AuthenticateToken(t.Context(), token, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(cached.entries) > cacheSize {
		t.Errorf("%d entries, at most %d are allowed", len(cached.entries), cacheSize)
	}
}

func TestTokenFile(t *testing.T) {
	file, err := readTokens(strings.NewReader("# people\none,jane,1\ntwo, bob ,2,\"dev, ops\"\n"), []string{"api"})
	if err != nil {
		t.Fatal(err)
	}
	user, audiences, ok, err := file.AuthenticateToken(t.Context(), "two", nil)
	if err != nil || !ok || user.Username != "bob" || user.UID != "2" || !slices.Equal(user.Groups, []string{"dev", "ops"}) ||
		!slices.Equal(audiences, []string{"api"}) {
		t.Errorf("%+v %v %v %v", user, audiences, ok, err)
	}
	if _, _, ok, err := file.AuthenticateToken(t.Context(), "three", nil); ok || err != nil {
		t.Errorf("unknown token: %v %v", ok, err)
	}
	if _, _, ok, err := file.AuthenticateToken(t.Context(), "one", []string{"vault"}); ok || err == nil {
		t.Errorf("token for another audience: %v %v", ok, err)
	}
	for text, want := range map[string]string{
		"a,b\n":          "line 1: token, user name and user id are required",
		"x,y,z\n,u,1\n":  "line 2: the token and the user name must not be empty",
		"t,a,1\nt,b,2\n": "line 2: duplicate token",
		"a,\"b,c\n":      "quote",
	} {
		if _, err := readTokens(strings.NewReader(text), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// TestAnonymousRule: a rule for a path does not cover the paths below it.
func TestAnonymousRule(t *testing.T) {
	a := &Anonymous{Next: Union{}}
	ask := func(path string) bool {
		_, ok, err := a.Authenticate(httptest.NewRequest(http.MethodGet, path, nil))
		if err != nil {
			t.Error(err)
		}
		return ok
	}
	if ask("/healthz") {
		t.Error("an anonymous request was let in before there was a rule")
	}
	health := []string{"/healthz", "/livez"}
	for _, test := range []struct {
		rule  AnonymousRule
		path  string
		letIn bool
	}{
		{AnonymousRule{}, "/healthz", false},
		{AnonymousRule{Enabled: true}, "/api/v1/pods", true},
		{AnonymousRule{Enabled: true, Paths: health}, "/healthz", true},
		{AnonymousRule{Enabled: true, Paths: health}, "/livez?verbose=1", true},
		{AnonymousRule{Enabled: true, Paths: health}, "/livez/etcd", false},
		{AnonymousRule{Enabled: true, Paths: health}, "/livez/", false},
		{AnonymousRule{Enabled: true, Paths: health}, "//livez", false},
		{AnonymousRule{Enabled: true, Paths: health}, "/api/v1/pods", false},
	} {
		a.Put(test.rule)
		if got := ask(test.path); got != test.letIn {
			t.Errorf("%+v: %s: %v", test.rule, test.path, got)
		}
	}
}
