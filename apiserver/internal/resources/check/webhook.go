package check

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"kctl/apiserver/internal/field"
)

const urlForm = "; desired format: https://host[/path]"

// WebhookURL checks the URL of a webhook.
func WebhookURL(text string, at *field.Path) field.ErrorList {
	u, err := url.Parse(text)
	if err != nil {
		return field.ErrorList{field.Required(at, "url must be a valid URL: "+err.Error()+urlForm)}
	}
	var errs field.ErrorList
	if u.Scheme != "https" {
		errs = append(errs, field.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme"+urlForm))
	}
	if u.Host == "" {
		errs = append(errs, field.Invalid(at, u.Host, "host must be specified"+urlForm))
	}
	if u.User != nil {
		errs = append(errs, field.Invalid(at, u.User.String(), "user information is not permitted in the URL"))
	}
	if u.Fragment != "" {
		errs = append(errs, field.Invalid(at, u.Fragment, "fragments are not permitted in the URL"))
	}
	if u.RawQuery != "" {
		errs = append(errs, field.Invalid(at, u.RawQuery, "query parameters are not permitted in the URL"))
	}
	return errs
}

// WebhookService checks the service of a webhook, with its path and port.
func WebhookService(namespace, name string, port *int32, path *string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	}
	if namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), ""))
	}
	if port != nil {
		for _, message := range validation.IsValidPortNum(int(*port)) {
			errs = append(errs, field.Invalid(at.Child("port"), *port, "port is not valid: "+message))
		}
	}
	if p := ptr.Deref(path, ""); p != "" && p != "/" {
		errs = append(errs, webhookPath(p, at.Child("path"))...)
	}
	return errs
}

func webhookPath(path string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !strings.HasPrefix(path, "/") {
		errs = append(errs, field.Invalid(at, path, "must start with a '/'"))
	}
	segments := strings.Split(path[1:], "/")
	if last := len(segments) - 1; last > 0 && segments[last] == "" {
		segments = segments[:last] // a trailing slash
	}
	for i, segment := range segments {
		if segment == "" {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d] may not be empty", i)))
			continue
		}
		for _, message := range validation.IsDNS1123Subdomain(segment) {
			errs = append(errs, field.Invalid(at, path, fmt.Sprintf("segment[%d]: %s", i, message)))
		}
	}
	return errs
}
