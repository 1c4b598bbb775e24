package credential

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kctl/proto/core"
)

func TestCredentialsOfSecrets(t *testing.T) {
	all := &core.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{
		"https://index.docker.io/v1/":{"auth":"aHViOnB3"},
		"r.test":{"username":"r","password":"pw"}, "r.test/team":{"username":"team"}, "r.test/team/app":{"username":"app"},
		"*.wild.test":{"username":"wild"}, "r.test:5000":{"username":"port"}}}`)}}
	old := &core.Secret{Type: corev1.SecretTypeDockercfg, Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"http://old.test/v2/":{"username":"old"}}`)}}
	for image, want := range map[string]string{
		"busybox":              "hub",
		"docker.io/team/app":   "hub",
		"r.test/x":             "r",
		"r.test/team":          "team r",
		"r.test/team/app:1":    "app team r",
		"r.test/teams/app":     "r",
		"r.test:5000/x":        "port",
		"a.wild.test/x":        "wild",
		"a.b.wild.test/x":      "",
		"wild.test/x":          "",
		"old.test/x":           "old",
		"elsewhere.test/x:tag": "",
	} {
		found, err := FromSecrets(image, []*core.Secret{all, old})
		if err != nil {
			t.Fatal(err)
		}
		if got := users(found); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}
