package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/fields"
	testingclock "k8s.io/utils/clock/testing"

	"kctl/apiserver/internal/authz"
	"kctl/apiserver/internal/request"
)

// service answers with a status, and records the requests.
type service struct {
	status string
	asked  []string
}

func (s *service) Ask(_ context.Context, question, answer any) error {
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	s.asked = append(s.asked, string(text))
	if s.status == "" {
		return errors.New("no answer")
	}
	var asked struct{ APIVersion string }
	_ = json.Unmarshal(text, &asked)
	return json.Unmarshal([]byte(`{"apiVersion":"`+asked.APIVersion+`","kind":"SubjectAccessReview","status":`+s.status+`}`), answer)
}

func pods(name string) *authz.Attributes {
	return &authz.Attributes{
		User: &request.User{Username: "jane", UID: "7", Groups: []string{"dev"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
		Info: request.Info{
			Resource: true, Verb: "list", APIVersion: "v1", Namespace: "shop", ResourceName: "pods", Subresource: "log", Name: name,
			Fields: fields.ParseSelectorOrDie("spec.nodeName=n1,status.phase!=Failed"), LabelSelector: "app in (b,a),tier!=x,in,!out,size>1",
		},
	}
}

func TestQuestions(t *testing.T) {
	const resource = `"resourceAttributes":{"namespace":"shop","verb":"list","version":"v1","resource":"pods","subresource":"log","name":"web",` +
		`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n1"]},{"key":"status.phase","operator":"NotIn","values":["Failed"]}]},` +
		`"labelSelector":{"requirements":[{"key":"app","operator":"In","values":["a","b"]},{"key":"in","operator":"Exists"},{"key":"out","operator":"DoesNotExist"},{"key":"tier","operator":"NotIn","values":["x"]}]}},"user":"jane"`
	for version, want := range map[string]string{
		"v1": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{` + resource +
			`,"groups":["dev"],"extra":{"k":["v"]},"uid":"7"},"status":{"allowed":false}}`,
		"v1beta1": `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","metadata":{},"spec":{` + resource +
			`,"extra":{"k":["v"]},"uid":"7","group":["dev"]},"status":{"allowed":false}}`,
	} {
		s := &service{status: `{"allowed":true}`}
		a := New(s, Options{Version: version, Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0))})
		if _, _, err := a.Authorize(t.Context(), pods("web")); err != nil || s.asked[0] != want {
			t.Errorf("%s: %v\n got %s\nwant %s", version, err, s.asked[0], want)
		}
	}
	s := &service{status: `{}`}
	a := New(s, Options{Version: "v1", Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0))})
	_, _, _ = a.Authorize(t.Context(), &authz.Attributes{User: &request.User{Username: "jane"}, Info: request.Info{Path: "/metrics", Verb: "get"}})
	if !strings.Contains(s.asked[0], `"nonResourceAttributes":{"path":"/metrics","verb":"get"}`) || strings.Contains(s.asked[0], "resourceAttributes\":{\"n") {
		t.Errorf("asked %s", s.asked[0])
	}
}

func TestAnswers(t *testing.T) {
	for status, want := range map[string]struct {
		decision authz.Decision
		err      string
	}{
		`{"allowed":true,"reason":"r"}`:                {authz.Allow, ""},
		`{"allowed":false,"reason":"r"}`:               {authz.NoOpinion, ""},
		`{"allowed":false,"denied":true,"reason":"r"}`: {authz.Deny, ""},
		`{"allowed":true,"denied":true,"reason":"r"}`:  {authz.Deny, "both allows and denies"},
		``: {authz.NoOpinion, "no answer"},
	} {
		a := New(&service{status: status}, Options{Version: "v1", Clock: testingclock.NewFakePassiveClock(time.Unix(0, 0))})
		decision, reason, err := a.Authorize(t.Context(), pods("web"))
		if decision != want.decision || (err != nil) != (want.err != "") || err != nil && !strings.Contains(err.Error(), want.err) || status != "" && reason != "r" {
			t.Errorf("%s: %v %q %v", status, decision, reason, err)
		}
	}
}

func TestMemory(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	s := &service{status: `{"allowed":true}`}
	a := New(s, Options{Version: "v1", AllowedTTL: time.Minute, RefusedTTL: time.Second, Clock: clock})
	ask := func(name string) int {
		_, _, _ = a.Authorize(t.Context(), pods(name))
		return len(s.asked)
	}
	if ask("a"); ask("a") != 1 || ask("b") != 2 {
		t.Errorf("asked %d times", len(s.asked))
	}
	clock.SetTime(time.Unix(60, 0))
	s.status = `{"allowed":false}`
	if ask("a"); ask("a") != 3 {
		t.Errorf("asked %d times after what was allowed ran out", len(s.asked))
	}
	clock.SetTime(time.Unix(61, 0))
	if ask("a") != 4 {
		t.Error("a refusal was remembered for too long")
	}
	s.status = ""
	if clock.SetTime(time.Unix(62, 0)); ask("a") != 5 || ask("a") != 6 {
		t.Error("a failure was remembered")
	}
	s.status = `{"allowed":true}`
	long := strings.Repeat("x", maxCachedSize)
	if ask(long); ask(long) != 8 {
		t.Error("a question of any length is remembered")
	}
}
