-- Schema 15: the user of Kubernetes for whom an access token reads.

ALTER TABLE access_token ADD COLUMN kubernetes_user TEXT;
