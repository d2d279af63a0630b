"""An authority and the certificates that it signs, made by openssl, for tests of TLS."""

import subprocess


class Authority:
    """Signs certificates; its files are below `directory`."""

    def __init__(self, directory, name):
        self.directory = directory
        self.name = name
        self._key = directory / f"{name}-ca-key.pem"
        self.file = directory / f"{name}-ca.pem"
        _openssl("req", "-x509", *_NEW_KEY, "-subj", f"/CN={name}", "-days", "30", "-keyout", self._key, "-out", self.file)

    def issue(self, name, subject, host=None, version=3):
        """Makes NAME-key.pem, NAME-cert.pem and NAME.pem, which holds both. Returns the three paths."""
        key, certificate, both = (self.directory / f"{name}{end}.pem" for end in ("-key", "-cert", ""))
        request = self.directory / f"{name}.csr"
        # Without any extension, openssl makes a certificate of version 1.
        extensions = ["-addext", "extendedKeyUsage=serverAuth,clientAuth"] if version == 3 else []
        extensions += ["-addext", f"subjectAltName=IP:{host}"] if host else []
        _openssl("req", *_NEW_KEY, "-subj", subject, *extensions, "-keyout", key, "-out", request)
        _openssl(
            *("x509", "-req", "-in", request, "-copy_extensions", "copy", "-days", "30"),
            *("-CA", self.file, "-CAkey", self._key, "-out", certificate),
        )
        both.write_text(certificate.read_text() + key.read_text())
        return key, certificate, both


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
