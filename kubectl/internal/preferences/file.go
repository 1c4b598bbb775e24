package preferences

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/homedir"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// The environment variable that names the file, or is Off; and the flag.
const (
	Environment = "KUBERC"
	Off         = "off"
	Flag        = "kuberc"
)

// ErrOff says that there are to be no preferences.
var ErrOff = errors.New("KUBERC is disabled via KUBERC=off environment variable")

// File is where the preferences are kept: what --kuberc says, or $KUBERC, or
// ~/.kube/kuberc. Named means that the user chose the file: then it has to
// exist and be valid. ErrOff means that preferences are switched off, or that
// there is no home directory.
func File(args []string) (path string, named bool, err error) {
	path, named, err = flagOf(args)
	if named && path == "" && err == nil {
		return "", true, errors.New("--" + Flag + " names no file")
	}
	if os.Getenv("KUBECTL_KUBERC") == "false" {
		return "", false, ErrOff
	}
	off := os.Getenv(Environment) == Off
	switch {
	case err != nil:
	case off && named:
		return "", true, errors.New("disabling kuberc via KUBERC=off and passing kuberc flag are mutually exclusive")
	case off:
		return "", false, ErrOff
	case !named:
		path = os.Getenv(Environment)
	}
	if path != "" || err != nil {
		return path, true, err
	}
	home := homedir.HomeDir()
	if home == "" { // not what somebody put into the current directory
		return "", false, ErrOff
	}
	return filepath.Join(home, ".kube", "kuberc"), false, nil
}

// flagOf is the value of --kuberc, and whether it is given: it has to be known
// before the flags can be parsed.
func flagOf(args []string) (value string, given bool, err error) {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if value, ok := strings.CutPrefix(arg, "--"+Flag+"="); ok {
			return value, true, nil
		}
		if arg == "--"+Flag {
			if i+1 == len(args) {
				return "", true, errors.New("flag needs an argument: --" + Flag)
			}
			return args[i+1], true, nil
		}
	}
	return "", false, nil
}

// Load reads a file: its first document that holds preferences. Unknown parts
// are left out, and reported in unknown. An empty file is one without
// preferences; one that is not there an os.ErrNotExist.
func Load(path string) (p *Preference, unknown error, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return &Preference{}, nil, nil
	}
	var wrong []error
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("no valid preferences found in %s: %w", path, errors.Join(wrong...))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		p, unknown, err := decode(document)
		if err == nil {
			return p, unknown, nil
		}
		wrong = append(wrong, err)
	}
}

// decode reads one document.
func decode(document []byte) (p *Preference, unknown error, err error) {
	encoded, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, nil, err
	}
	var meta metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(encoded, &meta); err != nil {
		return nil, nil, err
	}
	p = &Preference{}
	var into any = p
	alpha := &alphaPreference{}
	switch {
	case meta.Kind == Kind && meta.APIVersion == groupVersion:
	case meta.Kind == Kind && meta.APIVersion == alphaVersion:
		into = alpha
	default:
		return nil, nil, fmt.Errorf("%q of %q is not %s of %s", meta.Kind, meta.APIVersion, Kind, groupVersion)
	}
	strict, err := json.UnmarshalStrict(encoded, into)
	if err != nil {
		return nil, nil, err
	}
	if into == any(alpha) {
		p = alpha.preference()
	}
	for i := range p.Allowlist {
		if entry := &p.Allowlist[i]; entry.Command == "" {
			entry.Command, entry.Name = entry.Name, ""
		}
	}
	p.Kind, p.APIVersion = Kind, groupVersion
	return p, errors.Join(strict...), nil
}

// Save writes a file, and makes its directory where that is missing.
func (p *Preference) Save(path string) error {
	p.Kind, p.APIVersion = Kind, groupVersion
	encoded, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, encoded, 0o600)
}
