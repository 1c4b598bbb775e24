package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1 "k8s.io/kubelet/config/v1"
	"sigs.k8s.io/yaml"

	"kctl/proto/core"
)

const (
	configGroup  = "kubelet.config.k8s.io/"
	requestGroup = "credentialprovider.kubelet.k8s.io/"
)

// Load reads the plugins of a CredentialProviderConfig, or of all of those in a
// directory, in the order of their names; their programs are in binDir.
func Load(configPath, binDir string) ([]kubeletv1.CredentialProvider, error) {
	paths, err := configPaths(configPath)
	if err != nil {
		return nil, err
	}
	var all []kubeletv1.CredentialProvider
	var problems []error
	for _, path := range paths {
		providers, err := readProviders(path)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
		}
		all = append(all, providers...)
	}
	if len(problems) == 0 && len(all) == 0 {
		problems = append(problems, fmt.Errorf("%s: it contains no provider", configPath))
	}
	names := map[string]bool{}
	for i := range all {
		if err := check(&all[i], binDir); err != nil {
			problems = append(problems, fmt.Errorf("provider %q: %w", all[i].Name, err))
		}
		if names[all[i].Name] {
			problems = append(problems, fmt.Errorf("provider %q: the name is duplicated", all[i].Name))
		}
		names[all[i].Name] = true
	}
	return all, errors.Join(problems...)
}

func configPaths(configPath string) ([]string, error) {
	info, err := os.Stat(configPath)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{configPath}, nil
	}
	entries, err := os.ReadDir(configPath) // sorted by name
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) && !e.IsDir() {
			paths = append(paths, filepath.Join(configPath, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: it contains no .json, .yaml or .yml file", configPath)
	}
	return paths, nil
}

func readProviders(path string) ([]kubeletv1.CredentialProvider, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return nil, fmt.Errorf("neither YAML nor JSON: %w", err)
	}
	file := &kubeletv1.CredentialProviderConfig{}
	if err := core.DecodeStrict(data, file); err != nil {
		return nil, err
	}
	version, ours := strings.CutPrefix(file.APIVersion, configGroup)
	if !ours || !slices.Contains(versions, version) || file.Kind != "CredentialProviderConfig" {
		return nil, fmt.Errorf("it is a %s %s; %sv1 CredentialProviderConfig is expected", file.APIVersion, file.Kind, configGroup)
	}
	return file.Providers, nil
}

// versions of the configuration and of the requests to plugins. Only v1 has tokens
// of service accounts.
var versions = []string{"v1", "v1beta1", "v1alpha1"}

// check returns what is invalid about one plugin.
func check(p *kubeletv1.CredentialProvider, binDir string) error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if p.Name == "" || p.Name == "." || p.Name == ".." || strings.ContainsAny(p.Name, "/ \t\n") {
		add("name: that of a file is needed")
	} else if _, err := exec.LookPath(filepath.Join(binDir, p.Name)); err != nil {
		add("its program: %w", err)
	}
	version, ours := strings.CutPrefix(p.APIVersion, requestGroup)
	if !ours || !slices.Contains(versions, version) {
		add("apiVersion %q: %sv1 is expected", p.APIVersion, requestGroup)
	}
	if len(p.MatchImages) == 0 {
		add("matchImages: at least one is needed")
	}
	for _, pattern := range p.MatchImages {
		host, _, _ := strings.Cut(pattern, "/")
		if _, err := path.Match(host, ""); host == "" || err != nil {
			add("matchImages: %q is not a pattern of host[:port][/path]", pattern)
		}
	}
	if p.DefaultCacheDuration == nil || p.DefaultCacheDuration.Duration < 0 {
		add("defaultCacheDuration: a duration is needed, which is not negative")
	}
	for _, e := range p.Env {
		if e.Name == "" {
			add("env: a variable without a name")
		}
	}
	if p.TokenAttributes != nil {
		if version != "v1" {
			add("tokenAttributes: only %sv1 has them", requestGroup)
		}
		checkToken(p.TokenAttributes, add)
	}
	return errors.Join(problems...)
}

func checkToken(a *kubeletv1.ServiceAccountTokenAttributes, add func(format string, args ...any)) {
	if a.ServiceAccountTokenAudience == "" {
		add("tokenAttributes.serviceAccountTokenAudience: it is needed")
	}
	if a.CacheType != kubeletv1.TokenServiceAccountTokenCacheType && a.CacheType != kubeletv1.ServiceAccountServiceAccountTokenCacheType {
		add("tokenAttributes.cacheType %q: there are Token and ServiceAccount", a.CacheType)
	}
	if a.RequireServiceAccount == nil {
		add("tokenAttributes.requireServiceAccount: it is needed")
	} else if !*a.RequireServiceAccount && len(a.RequiredServiceAccountAnnotationKeys) > 0 {
		add("tokenAttributes.requiredServiceAccountAnnotationKeys: requireServiceAccount must be true for them")
	}
	seen := map[string]bool{}
	for _, key := range slices.Concat(a.RequiredServiceAccountAnnotationKeys, a.OptionalServiceAccountAnnotationKeys) {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			add("tokenAttributes: annotation %q: %s", key, strings.Join(problems, "; "))
		}
		if seen[key] {
			add("tokenAttributes: annotation %q is named twice", key)
		}
		seen[key] = true
	}
}

// cacheKey is a text that is unique for its parts.
func cacheKey(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings and maps of strings can be written
	}
	return string(text)
}
