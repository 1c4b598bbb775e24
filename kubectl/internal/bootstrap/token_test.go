package bootstrap

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kctl/proto/core"
)

func TestTokensAndTheirSecrets(t *testing.T) {
	now := time.Now().Truncate(time.Second).UTC()
	token := NewToken()
	token.Usages, token.Groups, token.Description, token.Expires = Usages, []string{DefaultGroup}, "rack 7", now
	if err := token.Validate(); err != nil {
		t.Fatal(err)
	}
	again, err := TokenOf(token.Object())
	if err != nil || again.String() != token.String() || !again.Expires.Equal(now) || again.Description != "rack 7" || len(again.Usages) != 2 ||
		again.Groups[0] != DefaultGroup {
		t.Errorf("got %+v, %v", again, err)
	}
	if data, err := json.Marshal(token); err != nil || strings.Contains(string(data), token.Secret) {
		t.Errorf("JSON shows the secret: %s, %v", data, err)
	}
	for _, text := range []string{"", "abcdef", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef", "abcdef.0123456789abcdef\n", "abcdef:0123456789abcdef"} {
		if _, err := ParseToken(text); err == nil || text != "" && strings.Contains(err.Error(), "0123456789abcde") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for name, bad := range map[string]*Token{
		"usage":           {Usages: []string{"ruling"}},
		"group":           {Usages: Usages, Groups: []string{"system:masters"}},
		"group for whom?": {Usages: []string{"signing"}, Groups: []string{DefaultGroup}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%s passes", name)
		}
	}
	for name, damage := range map[string]func(s *core.Secret){
		"name":       func(s *core.Secret) { s.Name = "bootstrap-token-zzzzzz" },
		"secret":     func(s *core.Secret) { delete(s.Data, core.BootstrapTokenSecret) },
		"expiration": func(s *core.Secret) { s.Data[core.BootstrapTokenExpiration] = []byte("soon") },
	} {
		s := token.Object()
		damage(s)
		if _, err := TokenOf(s); err == nil || strings.Contains(err.Error(), token.Secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
