// Package limitranger holds pods, their containers and volume claims to the
// limit ranges of their namespace, and gives containers without requests and
// limits the ranges' defaults (Kubernetes docs, "Limit Ranges").
package limitranger
