package generate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kctl/proto/core"
)

const rbacGroup = "rbac.authorization.k8s.io"

func rbacMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: kind}
}

// Role makes a role of rules.
func Role(name string, rules []rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: rbacMeta("Role"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

// ClusterRole makes a cluster role of rules, or, with labels, one that has the
// rules of all cluster roles with these labels.
func ClusterRole(name string, rules []rbacv1.PolicyRule, aggregate map[string]string) *rbacv1.ClusterRole {
	out := &rbacv1.ClusterRole{TypeMeta: rbacMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if len(aggregate) > 0 {
		out.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: aggregate}}}
	}
	return out
}

// RoleBinding makes a binding of a role or cluster role.
func RoleBinding(name, role, clusterRole string, subjects []rbacv1.Subject) (*rbacv1.RoleBinding, error) {
	if (role == "") == (clusterRole == "") {
		return nil, errors.New("exactly one of clusterrole or role must be specified")
	}
	ref := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: role}
	if clusterRole != "" {
		ref.Kind, ref.Name = "ClusterRole", clusterRole
	}
	return &rbacv1.RoleBinding{TypeMeta: rbacMeta("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: ref},
		nil
}

// ClusterRoleBinding makes a binding in every namespace at once.
func ClusterRoleBinding(name, clusterRole string, subjects []rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   rbacMeta("ClusterRoleBinding"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: clusterRole},
	}
}

// Subjects are users, groups and service accounts (NAMESPACE:NAME).
func Subjects(users, groups, accounts []string) ([]rbacv1.Subject, error) {
	var all []rbacv1.Subject
	for _, user := range users {
		all = append(all, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacGroup, Name: user})
	}
	for _, group := range groups {
		all = append(all, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacGroup, Name: group})
	}
	for _, account := range accounts {
		namespace, name, ok := strings.Cut(account, ":")
		if !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, errors.New("serviceaccount must be <namespace>:<name>")
		}
		all = append(all, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	return all, nil
}

// TLSSecret makes a secret of a certificate and its key.
func TLSSecret(name string, certificate, key []byte) *core.Secret {
	return &core.Secret{
		TypeMeta:   typeMeta("Secret"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}
}

// login is one registry's entry in a Docker configuration.
type login struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Email    string `json:"email,omitempty"`
	Auth     string `json:"auth,omitempty"`
}

// RegistrySecret makes a secret by which nodes pull from a registry.
func RegistrySecret(name, server, user, password, email string) (*core.Secret, error) {
	one := login{Username: user, Password: password, Email: email, Auth: base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}
	content, err := json.Marshal(map[string]map[string]login{"auths": {server: one}})
	if err != nil {
		return nil, fmt.Errorf("encoding the registry's login: %w", err)
	}
	return &core.Secret{
		TypeMeta:   typeMeta("Secret"),
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: content},
	}, nil
}
