// Package secret holds what is particular to secrets: their types, the data
// that each type requires, and that errors never show any of it.
package secret

import (
	"context"
	"crypto/tls"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/resources/cell"
	"kctl/apiserver/internal/resources/check"
	"kctl/proto/core"
)

// Strategy is the strategy of secrets.
func Strategy(clock clock.PassiveClock) registry.Strategy[*core.Secret] {
	return registry.Strategy[*core.Secret]{
		Resource: core.Secrets, Singular: "secret",
		StoragePrefix: "secrets",
		New:           func() *core.Secret { return new(core.Secret) },
		Default:       setDefaults,
		Create: registry.CreateStrategy[*core.Secret]{
			ValidateName: check.NameIsSubdomain,
			Validate:     func(_ context.Context, s *core.Secret) field.ErrorList { return validate(s) },
			Warnings:     func(_ context.Context, s *core.Secret) []string { return warnings(s) },
		},
		Update: registry.UpdateStrategy[*core.Secret]{
			AllowUnconditional: true,
			Validate:           validateUpdate,
			Warnings: func(_ context.Context, s, _ *core.Secret) []string {
				return warnings(s)
			},
		},
		Read: registry.ReadStrategy[*core.Secret]{
			Fields: func(s *core.Secret) fields.Set { return fields.Set{"type": string(s.Type)} },
			Columns: []metav1.TableColumnDefinition{
				cell.Name(),
				cell.Text("Type", core.Secret{}.SwaggerDoc()["type"]),
				cell.Text("Data", core.Secret{}.SwaggerDoc()["data"]),
				cell.AgeColumn(),
			},
			Row: func(s *core.Secret) []any {
				return []any{s.Name, string(s.Type), int64(len(s.Data)), cell.Age(clock.Now(), s.CreationTimestamp)}
			},
		},
	}
}

// setDefaults also moves stringData, which is write-only, into data.
func setDefaults(s *core.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	check.EmptyForNull(s.Data)
	if len(s.StringData) == 0 {
		s.StringData = nil
		return
	}
	if s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

// warnings warns about a certificate and a key that no server could use. They
// are checked only when written.
func warnings(s *core.Secret) []string {
	if s.Type != corev1.SecretTypeTLS {
		return nil
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		return []string{err.Error()}
	}
	return nil
}

func validate(s *core.Secret) field.ErrorList {
	var errs field.ErrorList
	data := field.NewPath("data")
	size := 0
	for key, value := range s.Data {
		errs = append(errs, check.Messages(data.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(value)
	}
	if size > check.MaxDataBytes {
		errs = append(errs, field.TooLong(data, "", check.MaxDataBytes))
	}
	return append(errs, validateType(s, data)...)
}

func validateType(s *core.Secret, data *field.Path) field.ErrorList {
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return jsonKey(s, corev1.DockerConfigKey, data)
	case corev1.SecretTypeDockerConfigJson:
		return jsonKey(s, corev1.DockerConfigJsonKey, data)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return field.ErrorList{
				field.Required(data.Key(corev1.BasicAuthUsernameKey), ""),
				field.Required(data.Key(corev1.BasicAuthPasswordKey), ""),
			}
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(data.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		var errs field.ErrorList
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if _, ok := s.Data[key]; !ok {
				errs = append(errs, field.Required(data.Key(key), ""))
			}
		}
		return errs
	}
	return nil
}

func jsonKey(s *core.Secret, key string, data *field.Path) field.ErrorList {
	value, ok := s.Data[key]
	if !ok {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	// The error shows at most one character of the data.
	var object map[string]any
	if err := json.Unmarshal(value, &object); err != nil {
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateUpdate(_ context.Context, s, old *core.Secret) field.ErrorList {
	errs := check.Unchanged(s.Type, old.Type, field.NewPath("type"))
	if old.Immutable != nil && *old.Immutable {
		const immutable = "field is immutable when `immutable` is set"
		if !ptr.Deref(s.Immutable, false) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), immutable))
		}
		if !equality.Semantic.DeepEqual(s.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), immutable))
		}
	}
	return append(errs, validate(s)...)
}
