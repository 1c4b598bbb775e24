package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"kctl/proto/core"
)

// entry is a registry's credentials in Docker's configuration file.
type entry struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"` // base64 of username:password
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// registryCredential is the credential for a registry, or a part of it.
type registryCredential struct {
	registry string // host[:port][/path], the host's labels may have wildcards
	Credential
}

// fitting are the known credentials whose place fits, in the order of their
// places.
func fitting(known []registryCredential, fits func(place string) bool, order func(a, b string) int) (fit []Credential) {
	places := slices.DeleteFunc(slices.Clone(known), func(c registryCredential) bool { return !fits(c.registry) })
	slices.SortStableFunc(places, func(a, b registryCredential) int { return order(a.registry, b.registry) })
	for _, c := range places {
		fit = append(fit, c.Credential)
	}
	return fit
}

// covering are the credentials in a file or a secret that cover a repository, those
// for the longest path first.
func covering(repository string, known []registryCredential) []Credential {
	return fitting(known, func(place string) bool { return matches(place, repository) },
		func(a, b string) int { return cmp.Compare(len(b), len(a)) })
}

// FromSecrets finds the secrets' credentials for an image, those for the longest
// path first. Secrets that cannot be read are left out and reported in the
// error.
func FromSecrets(image string, secrets []*core.Secret) ([]Credential, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, err
	}
	var known []registryCredential
	var unreadable []error
	for _, secret := range secrets {
		found, err := readSecret(secret)
		if err != nil {
			unreadable = append(unreadable, fmt.Errorf("secret %s: %w", secret.Name, err))
			continue
		}
		for i := range found {
			found[i].Secret = ownerOf(secret)
		}
		known = append(known, found...)
	}
	return covering(named.Name(), known), errors.Join(unreadable...)
}

// readSecret reads a secret of one of the two types made for this; others, as
// upstream has it, hold no credentials.
func readSecret(secret *core.Secret) ([]registryCredential, error) {
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		return readConfig(corev1.DockerConfigJsonKey, secret.Data[corev1.DockerConfigJsonKey])
	case corev1.SecretTypeDockercfg:
		return readOldConfig(corev1.DockerConfigKey, secret.Data[corev1.DockerConfigKey])
	}
	return nil, nil
}

// readConfig reads a Docker configuration.
func readConfig(name string, data []byte) ([]registryCredential, error) {
	file := struct {
		Auths map[string]entry `json:"auths"`
	}{}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s is not a Docker configuration: %w", name, err)
	}
	return readEntries(file.Auths)
}

// readOldConfig reads one in the old format, which has only the entries.
func readOldConfig(name string, data []byte) ([]registryCredential, error) {
	entries := map[string]entry{}
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, fmt.Errorf("%s is not a Docker configuration: %w", name, err)
	}
	return readEntries(entries)
}

func readEntries(entries map[string]entry) ([]registryCredential, error) {
	var found []registryCredential
	for place, e := range entries {
		auth := &runtimeapi.AuthConfig{
			Username: e.Username, Password: e.Password,
			IdentityToken: e.IdentityToken, RegistryToken: e.RegistryToken,
		}
		if e.Auth != "" {
			user, password, err := splitAuth(e.Auth)
			if err != nil {
				return nil, fmt.Errorf("auth of registry %s: %w", place, err)
			}
			auth.Username, auth.Password = user, password
		}
		found = append(found, registryCredential{registry: normalRegistry(place), Credential: Credential{Auth: auth}})
	}
	// Maps have no order; equal inputs must be tried in the same order.
	slices.SortFunc(found, func(a, b registryCredential) int { return cmp.Compare(a.registry, b.registry) })
	return found, nil
}

func splitAuth(auth string) (user, password string, err error) {
	plain, err := base64.StdEncoding.DecodeString(auth)
	if err != nil {
		if plain, err = base64.RawStdEncoding.DecodeString(auth); err != nil {
			return "", "", errors.New("not base64")
		}
	}
	user, password, ok := strings.Cut(string(plain), ":")
	if !ok {
		return "", "", errors.New("not of the form username:password")
	}
	return user, strings.TrimRight(password, "\x00"), nil
}

// normalRegistry strips what Docker's files have around a registry's name.
func normalRegistry(place string) string {
	place = strings.TrimPrefix(strings.TrimPrefix(place, "https://"), "http://")
	place = strings.TrimSuffix(place, "/")
	for _, version := range []string{"/v1", "/v2"} {
		place = strings.TrimSuffix(place, version)
	}
	host, rest, _ := strings.Cut(place, "/")
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = "docker.io"
	}
	if rest == "" {
		return host
	}
	return host + "/" + rest
}

// matches tells whether a place covers a repository: label by label of the
// host, and whole elements of the path.
func matches(place, repository string) bool {
	host, dir, _ := strings.Cut(place, "/")
	imageHost, imagePath, _ := strings.Cut(repository, "/")
	return matchHost(host, imageHost) && (dir == "" || imagePath == dir || strings.HasPrefix(imagePath, dir+"/"))
}

// begins does the same for a plugin's patterns: their path is a prefix of the
// image's, wherever it ends.
func begins(pattern, repository string) bool {
	host, dir, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(pattern, "https://"), "http://"), "/")
	imageHost, imagePath, _ := strings.Cut(repository, "/")
	return matchHost(host, imageHost) && strings.HasPrefix(imagePath, dir)
}

func matchHost(host, imageHost string) bool {
	name, port, _ := strings.Cut(host, ":")
	imageName, imagePort, _ := strings.Cut(imageHost, ":")
	labels, imageLabels := strings.Split(name, "."), strings.Split(imageName, ".")
	if port != imagePort || len(labels) != len(imageLabels) {
		return false
	}
	for i, label := range labels {
		if ok, err := path.Match(label, imageLabels[i]); err != nil || !ok {
			return false
		}
	}
	return true
}
