package access

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"kctl/apiserver/internal/config"
)

// TestAuthenticationFile: an issuer's users, mapped by expressions; some paths
// open to everybody; a changed file that takes effect without a restart.
func TestAuthenticationFile(t *testing.T) {
	t.Parallel()
	issuerURL, issuerCA, sign := oidcIssuer(t)
	authority, err := os.ReadFile(issuerCA)
	if err != nil {
		t.Fatal(err)
	}
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
	issuer := func(user string) string {
		return header + "jwt:\n- issuer:\n    url: " + issuerURL +
			"\n    audiences: [other, kctl]\n    audienceMatchPolicy: MatchAny\n    certificateAuthority: |\n      " +
			strings.ReplaceAll(strings.TrimSpace(string(authority)), "\n", "\n      ") + "\n  claimMappings: {username: {expression: '" + user + "'}}\n"
	}
	content := issuer(`"id:" + claims.sub.split(":")[3]`) + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n"
	path := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, func(o *config.Options) { o.AuthenticationConfig = path })
	whoIs := func(account string) string {
		var review authenticationv1.SelfSubjectReview
		const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
		err := c.Token(sign(account)).Do(t.Context(), http.MethodPost, path, &authenticationv1.SelfSubjectReview{}, &review)
		if err != nil {
			return err.Error()
		}
		return review.Status.UserInfo.Username
	}
	nobody := func(path string) int {
		err := c.Token("").Do(t.Context(), http.MethodGet, path, nil, nil)
		var status apierrors.APIStatus
		if errors.As(err, &status) {
			return int(status.Status().Code)
		}
		c.Must(err)
		return http.StatusOK
	}
	if name := whoIs("jane"); name != "id:jane" {
		t.Error(name)
	}
	if live, version := nobody("/livez"), nobody("/version"); live != http.StatusOK || version != http.StatusUnauthorized {
		t.Errorf("without credentials: %d, %d", live, version)
	}

	changed := c.Server.Files()[0]
	if err := changed.Apply([]byte(content + "nonsense: 1\n")); err == nil || !strings.Contains(err.Error(), `unknown field "nonsense"`) {
		t.Errorf("a bad file: %v", err)
	}
	if name := whoIs("june"); name != "id:june" {
		t.Errorf("a bad file changed something: %s", name)
	}
	misspelt := strings.Replace(content, issuerURL, issuerURL+"/nowhere", 1)
	if err := changed.Apply([]byte(misspelt)); err == nil || !strings.Contains(err.Error(), "issuer "+issuerURL+"/nowhere") {
		t.Errorf("an issuer that is not there: %v", err)
	}
	if name := whoIs("jill"); name != "id:jill" {
		t.Errorf("an issuer that is not there shut others out: %s", name)
	}
	c.Must(changed.Apply([]byte(issuer("claims.sub") + "anonymous: {enabled: false}\n")))
	if name := whoIs("joan"); name != "system:serviceaccount:elsewhere:joan" {
		t.Error(name)
	}
	if live := nobody("/livez"); live != http.StatusUnauthorized {
		t.Errorf("without credentials: %d", live)
	}
}
