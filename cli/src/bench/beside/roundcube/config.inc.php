<?php
$config['db_dsnw'] = 'sqlite:////var/lib/roundcube/data/roundcube.db?mode=0646';
$config['imap_host'] = 'localhost:143';
$config['smtp_host'] = 'localhost:25';
$config['smtp_user'] = '';
$config['smtp_pass'] = '';
$config['des_key'] = 'a-key-to-be-measured-by.';
$config['enable_spellcheck'] = false;
$config['log_driver'] = 'stdout';
