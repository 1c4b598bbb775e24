package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// service answers with a text, after checking the request.
type service struct {
	t      *testing.T
	answer string
	asked  authenticationv1.TokenReview
}

func (s *service) Ask(_ context.Context, question, answer any) error {
	s.asked = *question.(*authenticationv1.TokenReview)
	if s.answer == "" {
		return errors.New("no answer")
	}
	return json.Unmarshal([]byte(s.answer), answer)
}

func TestAnswers(t *testing.T) {
	const head = `{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","status":`
	for name, test := range map[string]struct {
		answer    string
		wanted    []string
		user      string
		audiences []string
		err       string
	}{
		"known": {head + `{"authenticated":true,"user":{"username":"jane","groups":["dev"]}}}`, nil, "jane", []string{"api"}, ""},
		"for an audience": {head + `{"authenticated":true,"user":{"username":"jane"},"audiences":["vault","shop"]}}`, []string{"vault"}, "jane",
			[]string{"vault"}, ""},
		"for another audience":  {head + `{"authenticated":true,"user":{"username":"jane"},"audiences":["shop"]}}`, nil, "", nil, "token is for"},
		"knows of no audiences": {head + `{"authenticated":true,"user":{"username":"jane"}}}`, []string{"vault"}, "", nil, "token is for"},
		"unknown":               {head + `{"authenticated":false}}`, nil, "", nil, ""},
		"unknown, with a user":  {head + `{"user":{"username":"root"}}}`, nil, "", nil, ""},
		"unknown, and says why": {head + `{"error":"too old"}}`, nil, "", nil, "too old"},
		"known as nobody":       {head + `{"authenticated":true}}`, nil, "", nil, "without naming a user"},
		"of another version": {`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":"root"}}}`, nil,
			"", nil, " instead of a "},
		"of another kind": {`{"apiVersion":"v1","kind":"Status","status":"Success"}`, nil, "", nil, "token webhook"},
		"none":            {"", nil, "", nil, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{t: t, answer: test.answer}
			a := &Authenticator{Service: s, Version: "v1beta1", Audiences: []string{"api"}}
			user, audiences, ok, err := a.AuthenticateToken(t.Context(), "abc", test.wanted)
			if ok != (test.user != "") || ok && (user.Username != test.user || !slices.Equal(audiences, test.audiences)) {
				t.Errorf("%+v for %v", user, audiences)
			}
			if (err != nil) != (test.err != "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "abc")) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if want := test.wanted; s.asked.Spec.Token != "abc" || s.asked.APIVersion != "authentication.k8s.io/v1beta1" ||
				want == nil && s.asked.Spec.Audiences[0] != "api" {
				t.Errorf("asked %+v", s.asked)
			}
		})
	}
}
